"""Processes are compared across and within workers; a worker is as slow as its slowest one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.diagnosis.verdict import Diagnosis, Suspect
from services.failslow.core.measures.peers import Thresholds
from services.failslow.core.state import GangState
from services.failslow.core.suspicion.comparison import Rows, cause_of, gpu_of, judge_gang, numbers
from services.failslow.core.suspicion.evidence import Evidence
from shared.contracts.faults import FaultSuspected, FaultyPart, GangWorker
from shared.contracts.reports import IterationTimes, TelemetryReported
from tests.harness.decider import an_input, given
from tests.services.failslow.gangs import POOL, gang, verdicts, watched

FAILSLOW, LIMITS = FailSlow(), Thresholds()
GPUS = 4


def state_of(workers: int) -> GangState:
    own = gang(workers=workers)
    return GangState("acme", 1, {worker.rank: worker for worker in own.workers})


def row(rank: int, process: int | None, *own_s: float) -> IterationTimes:
    return IterationTimes(
        job_id="j1",
        allocation_id=f"0/9/0/{rank}",
        node_id=f"n{rank}",
        rank=rank,
        process=process,
        iteration_s=own_s,
        own_s=own_s,
    )


def rows(gang_state: GangState, seconds: Sequence[float], reports: int = 3) -> Rows:
    """Return reports of four processes per worker."""
    own = [row(n // GPUS, n, *[value] * reports) for n, value in enumerate(seconds)]
    return Rows.of(gang_state, own)


def test_a_slow_gpu_of_a_gang_of_one_is_suspected_by_the_other_gpus() -> None:
    alone = state_of(1)
    compared = rows(alone, [1.0, 1.01, 1.5, 0.99])
    verdict = judge_gang(alone, compared, LIMITS)
    assert (list(verdict.slow), verdict.healthy, verdict.processes) == ([0], (), {0: 2})
    cause = cause_of(compared, verdict, 0, LIMITS.reports, 4.0)
    assert (cause.cause, cause.suspects[0].kind, cause.suspects[0].ranks) == (
        "compute",
        "gpu",
        (2,),
    )


def test_the_slowest_process_speaks_for_its_worker() -> None:
    three = state_of(3)
    seconds = [1.0] * 5 + [1.4, 1.6, 1.0] + [1.0] * 4
    verdict = judge_gang(three, rows(three, seconds), LIMITS)
    assert (list(verdict.slow), verdict.processes) == ([1], {1: 6})
    assert verdict.slow[1].slowdown == pytest.approx(1.6)
    assert verdict.healthy == (0, 2)


def test_a_node_with_slow_gpus_alone_is_the_node() -> None:
    three = state_of(3)
    compared = rows(three, [1.0] * 4 + [1.5] * 4 + [1.0] * 4)
    verdict = judge_gang(three, compared, LIMITS)
    cause = cause_of(compared, verdict, 1, LIMITS.reports, 4.0)
    assert (cause.suspects[0].kind, cause.suspects[0].node_ids) == ("node", ("n1",))


def test_one_process_alone_has_no_peers() -> None:
    alone = state_of(1)
    verdict = judge_gang(alone, Rows.of(alone, [row(0, 0, 9.0, 9.0, 9.0)]), LIMITS)
    assert (verdict.slow, verdict.healthy) == ({}, ())


def test_assumed_noise_widens_the_gap_that_is_needed() -> None:
    four = state_of(4)
    compared = Rows.of(four, [row(r, r, *[1.3 if r == 2 else 1.0] * 3) for r in range(4)])
    assert list(judge_gang(four, compared, LIMITS).slow) == [2]
    assert judge_gang(four, compared, LIMITS, noise=0.1).slow == {}


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([(0, 8), (1, 9)], [8, 9]),
        ([(0, None), (1, None)], [0, 1]),
        ([(0, 0), (1, 0)], [0, 1]),
        ([(0, None), (0, 1)], [0, 1]),
    ],
)
def test_numbers_are_ranks_of_the_training_where_these_are_known(
    reports: list[tuple[int, int | None]], expected: list[int]
) -> None:
    own = [row(rank, process, 1.0) for rank, process in reports]
    assert list(numbers(own)) == expected


def test_evidence_keeps_the_processes_of_a_worker_apart() -> None:
    state, evidence = given(FAILSLOW, POOL, watched(gang(workers=1))), Evidence(LIMITS)
    events = []
    for at in (1, 2, 3):
        own = tuple(row(0, n, 1.5 if n == 3 else 1.0) for n in range(8))
        report = TelemetryReported(executor_id="e1", at=at, times=own)
        evidence.add(report, state.gangs)
        for message in evidence.take_news(state):
            events += verdicts(FAILSLOW, state, [an_input(message, "local")])
    (fault,) = events
    assert isinstance(fault, FaultSuspected)
    assert (fault.fault_id, fault.node_id, fault.part) == ("j1/1/0/1", "n0", "gpu")
    assert fault.cause_evidence[0].startswith("gpu of rank 3: 1.50 times")


@pytest.mark.parametrize(
    ("kind", "gpus", "process", "expected"),
    [
        ("gpu", (4, 6), 3, 6),
        ("gpu", (4, 6), 2, 4),
        ("node", (4, 6), 3, None),
        ("gpu", (4,), 3, None),
        ("gpu", (), 3, None),
        ("gpu", (4, 6), 9, None),
    ],
)
def test_the_nth_process_of_a_worker_has_its_nth_gpu(
    kind: FaultyPart, gpus: tuple[int, ...], process: int, expected: int | None
) -> None:
    worker = GangWorker(rank=1, node_id="n1", allocation_id="0/9/0/1", gpus=gpus)
    rows = [
        IterationTimes(
            job_id="j1",
            allocation_id="0/9/0/1",
            node_id="n1",
            rank=1,
            process=number,
            iteration_s=(1.0,),
        )
        for number in (2, 3)
    ]
    state = GangState("acme", 1, {1: worker})
    cause = Diagnosis("compute", (Suspect(kind, (process,), ("n1",), 1.5, 9.0),), 0.9)
    assert gpu_of(state, Rows.of(state, rows), 1, cause) == expected
