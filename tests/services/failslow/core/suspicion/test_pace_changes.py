from __future__ import annotations

from services.failslow.core.decide import FailSlow
from services.failslow.core.state import FailSlowState
from shared.contracts.base import Event
from shared.contracts.paces import JobPaceChanged
from tests.harness.decider import an_input, given, run
from tests.services.failslow.gangs import POOL, gang, watched


def change(is_slow: bool = True, attempt: int = 1, job_id: str = "j1") -> JobPaceChanged:
    return JobPaceChanged(
        job_id=job_id,
        attempt=attempt,
        is_slow=is_slow,
        since_step=100,
        iterations=6,
        slowdown=1.4,
        iteration_s=1.4,
        usual_s=1.0,
        score=30.0,
        confidence=1.0,
    )


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
