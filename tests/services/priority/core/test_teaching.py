"""Ends that a tenant can have at no cost teach no run time."""

from __future__ import annotations

import pytest

from services.priority.core.history.distributions import CUT_SHORT_S
from services.priority.core.state import PriorityState
from shared.contracts.attempts import JobCancelled, JobFailed, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.ranking import QueueChanged
from tests.harness.decider import AT, given, run
from tests.services.priority.core.lane import (
    PRIORITY,
    admitted,
    from_placement,
    only,
    pool,
    running,
)

ENDS = {
    "succeeded": JobSucceeded(job_id="a", tenant="red", attempt=1),
    "failed": JobFailed(job_id="a", tenant="red", attempt=1, reason="exit"),
    "cancelled": JobCancelled(job_id="a", tenant="red", reason="asked"),
}


def samples(state: PriorityState) -> float:
    """Return how many run times history holds of the tenant's jobs."""
    return state.history.estimate("red", "u", "n", 1).samples


def end(event: Event, ran_s: float, guarded: bool = True) -> PriorityState:
    state = given(PRIORITY, pool(guard_predictions=guarded))
    run(PRIORITY, state, [admitted("a", user="u", name="n"), *running("a")])
    at = AT + round(ran_s * 1000)
    run(PRIORITY, state, [from_placement(event, at)], at)
    return state


@pytest.mark.parametrize(
    ("kind", "ran_s", "learns"),
    [
        ("succeeded", 1.0, True),
        ("failed", CUT_SHORT_S - 1, False),
        ("failed", CUT_SHORT_S, True),
        ("cancelled", CUT_SHORT_S - 1, False),
        ("cancelled", CUT_SHORT_S, True),
    ],
)
def test_what_is_learnt_of_an_end(kind: str, ran_s: float, learns: bool) -> None:
    assert (samples(end(ENDS[kind], ran_s)) > 0) == learns
    assert samples(end(ENDS[kind], ran_s, guarded=False)) > 0, "as in earlier releases"


def test_an_end_that_teaches_nothing_is_recorded_all_the_same() -> None:
    """A recorded pool is replayed with all of its jobs."""
    state = given(PRIORITY, pool(guard_predictions=True))
    run(PRIORITY, state, [admitted("a", user="u", name="n"), *running("a")])
    ended = from_placement(ENDS["cancelled"], AT + 30_000)
    changed = only(run(PRIORITY, state, [ended], AT + 30_000), QueueChanged)
    [noted] = changed.finished
    assert (noted.job_id, noted.ran_s, noted.teaches) == ("a", 30.0, False)
    assert state.accuracy.samples == 0


def test_jobs_that_are_always_cancelled_are_predicted_as_they_run() -> None:
    """A tuner ends its trials after ten minutes: no longer run time than that is learnt."""
    state = given(PRIORITY, pool(guard_predictions=True))
    for number in range(40):
        at = AT + number * 1_000_000
        trial = admitted(f"a{number}", user="u", name="trial")
        run(PRIORITY, state, [trial, *running(f"a{number}", at=at)], at)
        cancelled = JobCancelled(job_id=f"a{number}", tenant="red", reason="asked")
        run(PRIORITY, state, [from_placement(cancelled, at + 600_000)], at + 600_000)
    predicted = state.history.estimate("red", "u", "trial", 1)
    assert 300.0 < predicted.p50_s < 1200.0


def test_a_failure_at_once_that_outlived_its_prediction_is_learnt() -> None:
    state = given(PRIORITY, pool(guard_predictions=True))
    for number in range(600):
        state.history.learn("red", "u", "n", 1, 1.0 + number % 2)
    before = samples(state)
    run(PRIORITY, state, [admitted("a", user="u", name="n"), *running("a")])
    assert state.table.get(state.jobs["a"].row, "mean_s") < CUT_SHORT_S - 1
    run(PRIORITY, state, [from_placement(ENDS["failed"], AT + 59_000)], AT + 59_000)
    assert samples(state) != before


def test_a_job_that_comes_and_is_cancelled_in_one_batch_teaches_nothing() -> None:
    state = given(PRIORITY, pool(guard_predictions=True))
    came = [admitted("a", user="u", name="n"), *running("a")]
    run(PRIORITY, state, [*came, from_placement(ENDS["cancelled"], AT + 1000)], AT + 1000)
    assert samples(state) == 0
