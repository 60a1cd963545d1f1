from __future__ import annotations

from services.failslow.core.decide import FailSlow
from services.failslow.core.state import FailSlowState
from shared.contracts.base import Event
from shared.contracts.paces import JobPaceChanged
from tests.harness.decider import an_input, given, run
from tests.services.failslow.gangs import POOL, gang, watched
from tests.services.failslow.paces import pace_change


def change(is_slow: bool = True, attempt: int = 1, job_id: str = "j1") -> JobPaceChanged:
    times = {"since_step": 100, "slowdown": 1.4, "iteration_s": 1.4, "iterations": 6}
    return pace_change(job_id=job_id, attempt=attempt, is_slow=is_slow, score=30.0, **times)


def decided(state: FailSlowState, *changes: JobPaceChanged) -> list[Event]:
    return [event for one in changes for event in run(FailSlow(), state, [an_input(one, "local")])]


def test_one_fault_is_open_per_job_and_each_has_a_number() -> None:
    state = given(FailSlow(), POOL, watched(gang()))
    events = decided(state, change(), change(), change(is_slow=False), change())
    assert [event.fault_id for event in events] == [  # type: ignore[attr-defined]
        "j1/1/job/1",
        "j1/1/job/1",
        "j1/1/job/2",
    ]


def test_changes_of_other_attempts_and_jobs_have_no_effect() -> None:
    state = given(FailSlow(), POOL, watched(gang()))
    assert decided(state, change(attempt=2), change(job_id="j2"), change(is_slow=False)) == []
