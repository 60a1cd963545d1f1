"""The measurements of a validation, and the part that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.measures.peers import Thresholds
from services.failslow.core.state import FailSlowState, GangState
from services.failslow.core.suspicion.evidence import Evidence
from services.failslow.core.suspicion.pace import JobPaces
from services.failslow.core.suspicion.validations import TOO_FEW, WAITS, Validations
from shared.contracts.faults import GangWorker
from shared.contracts.mitigation import NodeHealthScored
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import IterationTimes, TelemetryReported
from shared.contracts.validation import (
    FIRST_GPU,
    FIRST_LINK,
    MEMORY,
    PROCESSOR,
    NodesValidated,
    ValidationMeasured,
)
from tests.harness.decider import AT, an_input, given, run
from tests.services.failslow.gangs import POOL, gang, watched

Times = Mapping[int, float]
RELEASED = POOL.model_copy(update={"release": 1})


def node(rank: int, count: int, slower: float = 1.0, gpus: Sequence[float] = (1.0,)) -> Times:
    jitter = 1 + 0.002 * rank
    times = {PROCESSOR: 0.02 * slower * jitter, MEMORY: 0.01 * slower * jitter}
    times |= {FIRST_GPU + n: 0.05 * slower * own * jitter for n, own in enumerate(gpus)}
    return {**times, FIRST_LINK + (rank + 1) % count: 0.03 * jitter}


def validated(
    *times_s: Times, pool: PoolConfigured = RELEASED, waits_s: Sequence[float] = ()
) -> NodesValidated | None:
    state = FailSlowState(0, pool=pool)
    message = ValidationMeasured(
        job_id="v1",
        tenant="acme",
        attempt=1,
        node_ids=tuple(f"n{rank}" for rank in range(len(times_s))),
        times_s=tuple(dict(own) for own in times_s),
        waits_s=tuple({PROCESSOR: wait_s} for wait_s in waits_s),
    )
    events = run(FailSlow(), state, [an_input(message, "local")], AT)
    assert all(isinstance(event, NodeHealthScored) for event in events[1:])
    event = events[0] if events else None
    assert event is None or isinstance(event, NodesValidated)
    return event


def test_a_node_with_a_slow_processor_and_slow_gpus_is_suspected() -> None:
    event = validated(*(node(rank, 4, slower=1.5 if rank == 2 else 1.0) for rank in range(4)))
    assert event is not None
    assert (event.cause, event.part, event.suspect_node_ids) == ("compute", "node", ("n2",))
    assert event.confidence > 0.8
    assert event.rounds == 2
    assert len(event.measured) == 16
    worst = max(event.measured, key=lambda part: part.ratio)
    assert (worst.node_id, round(worst.ratio, 1)) == ("n2", 1.5)


def test_one_slow_gpu_of_a_node_is_named_without_its_node() -> None:
    event = validated(*(node(rank, 3, gpus=(1, 1.4 if rank == 1 else 1)) for rank in range(3)))
    assert event is not None
    assert (event.part, event.suspect_node_ids) == ("gpu", ("n1",))
    assert event.evidence[0].startswith("gpu of n1: 1.40 times the median")
    assert event.rounds == 3


def test_a_slow_link_is_named_by_both_ends() -> None:
    times = [dict(node(rank, 4)) for rank in range(4)]
    times[1][FIRST_LINK + 2] *= 3
    event = validated(*times)
    assert event is not None
    assert (event.cause, event.part) == ("communication", "link")
    assert event.suspect_node_ids == ("n1", "n2")


def test_two_slow_links_with_one_end_in_common_are_of_its_node() -> None:
    times = [dict(node(rank, 5)) for rank in range(5)]
    times[1][FIRST_LINK + 2] *= 3
    times[2][FIRST_LINK + 3] *= 3
    event = validated(*times)
    assert event is not None
    assert (event.cause, event.part, event.suspect_node_ids) == ("communication", "node", ("n2",))
    links = [sentence.split(":")[0] for sentence in event.evidence]
    assert links[0] == "links of n2"
    assert set(links[1:]) == {"link of n1 and n2", "link of n2 and n3"}


def test_a_host_that_is_busy_beside_calm_ones_is_named() -> None:
    event = validated(*(node(rank, 3) for rank in range(3)), waits_s=(0.0, 0.03, 0.001))
    assert event is not None
    assert (event.cause, event.part, event.suspect_node_ids) == ("compute", "node", ("n1",))
    assert event.evidence[0].startswith("node of n1: 2.37 times")
    assert event.evidence[1:] == (f"n1 {WAITS}",)


def test_load_on_all_hosts_hides_no_slow_processor_and_makes_none() -> None:
    waits_s = (0.1, 0.02, 0.4)
    event = validated(*(node(rank, 3) for rank in range(3)), waits_s=waits_s)
    assert event is not None
    assert (event.cause, event.suspect_node_ids) == ("unknown", ())
    slowed = (node(rank, 3, slower=3.0 if rank == 1 else 1.0) for rank in range(3))
    event = validated(*slowed, waits_s=waits_s)
    assert event is not None
    assert (event.cause, event.part, event.suspect_node_ids) == ("compute", "node", ("n1",))


@pytest.mark.parametrize(
    ("times", "evidence"),
    [
        ([node(0, 2), node(1, 2, slower=3)], TOO_FEW),
        ([node(rank, 4) for rank in range(4)], "no measured part deviates from its peers"),
    ],
)
def test_the_cause_stays_unknown(times: list[Times], evidence: str) -> None:
    event = validated(*times)
    assert event is not None
    assert (event.cause, event.part, event.evidence) == ("unknown", "", (evidence,))


def test_a_node_of_which_nothing_came_is_named() -> None:
    event = validated(*(node(rank, 4) for rank in range(3)), {})
    assert event is not None
    assert event.silent_node_ids == ("n3",)


def test_an_earlier_release_gets_no_event_that_it_cannot_read() -> None:
    early = RELEASED.model_copy(update={"release": 0})
    assert validated(*(node(rank, 3) for rank in range(3)), pool=early) is None


def test_reports_of_a_validation_are_collected_until_it_ends_and_suspect_no_worker() -> None:
    workers = {r: GangWorker(rank=r, node_id=f"n{r}", allocation_id=f"0/9/0/{r}") for r in (0, 1)}
    gangs = {"v1": GangState("acme", 1, workers, "trace", validates=True)}
    state = FailSlowState(0, pool=POOL, gangs=gangs)
    evidence, paces, validations = Evidence(Thresholds()), JobPaces(), Validations()

    def add(
        rank: int,
        *rows: tuple[int, float],
        allocation: str = "",
        delays: tuple[float | None, ...] = (),
    ) -> None:
        steps, seconds = zip(*rows, strict=True)
        times = IterationTimes(
            job_id="v1",
            allocation_id=allocation or f"0/9/0/{rank}",
            node_id=f"n{rank}",
            rank=rank,
            steps=steps,
            iteration_s=seconds,
            delay_s=delays,
        )
        report = TelemetryReported(executor_id="e1", at=AT, times=(times,))
        for collector in (evidence, paces, validations):
            collector.add(report, state.gangs)

    add(0, (PROCESSOR, 0.02), (FIRST_LINK + 1, 0.03), (FIRST_LINK + 2, 9.0), (7, 9.0))
    add(0, (MEMORY, 0.01), (PROCESSOR, 0.05), delays=(None, 0.03))
    add(0, (FIRST_GPU, 5e-324), (FIRST_GPU + 1, 0.0), (FIRST_GPU + 2, 1e9))
    add(1, (PROCESSOR, 0.06))
    add(1, (PROCESSOR, 9.0), allocation="0/8/0/1")
    assert evidence.take_news(state) == []
    assert paces.take_changes(state) == []
    assert validations.take_ended(state) == []
    state.gangs.clear()
    (ended,) = validations.take_ended(state)
    assert ended.times_s == (
        {PROCESSOR: pytest.approx(0.02), FIRST_LINK + 1: 0.03, MEMORY: 0.01},
        {PROCESSOR: 0.06},
    )
    assert [waits[PROCESSOR] for waits in ended.waits_s] == [0.03, 0.0]
    assert (ended.node_ids, ended.tenant, ended.traceparent) == (("n0", "n1"), "acme", "trace")
    assert validations.take_ended(state) == []


def test_a_validation_is_noted_as_one() -> None:
    state = given(FailSlow(), watched(gang().model_copy(update={"validates": True})))
    assert state.gangs["j1"].validates


def test_a_node_that_is_measured_to_be_well_after_faults_is_repaired() -> None:
    state = FailSlowState(0, pool=RELEASED)

    def measured(slower: float) -> list[NodeHealthScored]:
        times = tuple(dict(node(r, 4, slower=slower if r == 2 else 1.0)) for r in range(4))
        message = ValidationMeasured(
            job_id=f"v{slower}",
            tenant="acme",
            attempt=1,
            node_ids=("n0", "n1", "n2", "n3"),
            times_s=times,
        )
        events = run(FailSlow(), state, [an_input(message, "local")], AT)
        return [event for event in events if isinstance(event, NodeHealthScored)]

    [slow] = measured(1.5)
    assert (slow.node_id, slow.faults, slow.repairs) == ("n2", 1, 0)
    [well] = measured(1.0)
    assert (well.node_id, well.faults, well.repairs) == ("n2", 1, 1)
    assert slow.score < well.score < 1
    assert 1 / well.score - 1 == pytest.approx((1 / slow.score - 1) / 4)
