"""The detector on minibatch times of two real jobs (Alibaba PAI), ten workers each.

The rows carry no labels. By eye: in job_1 worker 6 is 25 % slower around step 1,900 and recovers;
in job_3 workers 6 to 9 become 25-30 % slower near step 2,200 and stay so; no other one stands out.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.measures.peers import Thresholds
from services.failslow.core.suspicion.evidence import Evidence
from shared.contracts.faults import FaultCleared, FaultSuspected
from simulator.workload.locate import has_trace, locate
from tests.harness.decider import an_input, given
from tests.services.failslow.gangs import POOL, gang, report, watched
from tests.services.failslow.gangs import verdicts as decided

TRACE = "failslow_pai_minibatch"
WORKERS = 10
ROWS_PER_REPORT = 2
"""A row is every tenth minibatch."""


def rows(job: str) -> dict[int, dict[int, float]]:
    if not has_trace(TRACE):
        pytest.skip(f"needs the shared trace {TRACE}")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows_by_step: dict[int, dict[int, float]] = defaultdict(dict)
    for row in parquet.read_table(locate(TRACE)).to_pylist():
        if row["job"] == job:
            rows_by_step[row["time"]][row["worker"]] = float(row["batch_time_norm"])
    return rows_by_step


def verdicts(job: str) -> list[tuple[str, int, int]]:
    """Return (verdict, worker, step) of all verdicts on one job."""
    state = given(FailSlow(), POOL, watched(gang(workers=WORKERS)))
    evidence = Evidence(Thresholds())
    steps = sorted(rows(job).items())
    timeline: list[tuple[str, int, int]] = []
    for first in range(0, len(steps), ROWS_PER_REPORT):
        part = steps[first : first + ROWS_PER_REPORT]
        step = part[-1][0]
        base = report(step, *[1.0] * WORKERS)
        times = tuple(
            worker.model_copy(
                update={"iteration_s": tuple(r[worker.rank] for _, r in part if worker.rank in r)}
            )
            for worker in base.times
        )
        evidence.add(base.model_copy(update={"times": times}), state.gangs)
        for message in evidence.take_news(state):
            for event in decided(FailSlow(), state, [an_input(message, "local")]):
                assert isinstance(event, FaultSuspected | FaultCleared)
                kind = "suspected" if isinstance(event, FaultSuspected) else "cleared"
                timeline.append((kind, int(event.fault_id.split("/")[2]), step))
    return timeline


def test_the_one_slow_worker_is_suspected_and_cleared() -> None:
    timeline = verdicts("job_1")
    assert [(kind, worker) for kind, worker, _ in timeline] == [("suspected", 6), ("cleared", 6)]
    assert 1800 < timeline[0][2] < timeline[1][2] < 2200


def test_exactly_the_four_slow_workers_of_ten_are_suspected() -> None:
    timeline = verdicts("job_3")
    assert sorted(worker for kind, worker, _ in timeline if kind == "suspected") == [6, 7, 8, 9]
    assert all(step > 2150 for _, _, step in timeline)
    assert [kind for kind, _, _ in timeline].count("cleared") == 0
