"""A drift is an event once; its end is another."""

from __future__ import annotations

from services.priority.core.drift import report_drift
from shared.contracts.ranking import Finished, IntervalsDrifted, IntervalsRecovered
from tests.harness.decider import fold
from tests.services.priority.core.lane import PRIORITY
from tests.services.priority.core.queues import change, entry, queue


def test_a_drift_is_reported_once_and_its_end_once() -> None:
    state = queue()
    assert list(report_drift(state)) == []
    for job in range(1500):
        state.coverage.add(job % 2 == 0)
    (drifted,) = [decision.event for decision in report_drift(state)]
    assert drifted == IntervalsDrifted(
        pool="p", coverage=round(state.coverage.share, 4), claimed=0.8, samples=1500
    )
    fold(PRIORITY, state, [drifted])
    assert list(report_drift(state)) == []
    assert state.prediction_terms()["interval.drifted"] == 1.0
    for job in range(3000):
        state.coverage.add(job % 5 != 0)
    (recovered,) = [decision.event for decision in report_drift(state)]
    assert isinstance(recovered, IntervalsRecovered)
    fold(PRIORITY, state, [recovered])
    assert list(report_drift(state)) == []


def test_every_job_that_ends_with_an_interval_counts() -> None:
    state = queue(entry("a"), entry("b"))
    row = state.jobs["a"].row
    low_s, high_s = (state.table.get(row, name) for name in ("low_s", "high_s"))
    assert 0 < low_s < state.table.get(row, "middle_s") < high_s
    ends = (Finished(job_id="a", ran_s=high_s + 1), Finished(job_id="b", ran_s=high_s - 1))
    change(state, finished=ends, left=("a", "b"))
    assert (state.coverage.samples, state.coverage.inside) == (2, 1.0)
    assert state.calibration.tenants.keys() == {"red"}
    assert state.calibration.levels("red")[0] > 0.1, "no job ended below p10, so it rises"
