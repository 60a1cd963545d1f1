"""The program of an array is recorded once, in pools that this release configured."""

from __future__ import annotations

from typing import Any

from services.admission.core.rules import MAX_ARRAY_BYTES
from services.admission.core.state import AdmissionState
from shared.contracts.admission import ArrayAccepted, ArrayEnded, JobAdmitted, JobDeferred
from shared.contracts.base import Event
from shared.contracts.codec import encode_event
from tests.services.admission.core.cases import (
    POOL,
    cancel,
    drain,
    placed,
    pool,
    quota,
    submit,
    succeeded,
    summarize,
    when,
)

ONCE = POOL.model_copy(update={"programs_once": True})
PROGRAM: dict[str, Any] = {"command": ["python", "x" * 8000], "env": {"A": "y" * 8000}}


def after_array(size: int, *history: Event, **spec: Any) -> tuple[AdmissionState, list[Event]]:
    state = pool(*history)
    return state, [*when(state, submit("a", size=size, **(PROGRAM | spec))), *drain(state)]


def sizes(events: list[Event]) -> list[int]:
    return [len(encode_event(event)) for event in events if isinstance(event, JobAdmitted)]


def test_jobs_of_an_array_do_not_repeat_its_program() -> None:
    _, events = after_array(20, ONCE)
    (array,) = (event for event in events if isinstance(event, ArrayAccepted))
    assert array.program_once and array.spec.env == PROGRAM["env"]
    jobs = [event.spec for event in events if isinstance(event, JobAdmitted)]
    assert len(jobs) == 20
    assert all((spec.command, spec.env) == ((), {}) for spec in jobs)
    assert max(sizes(events)) < 700


def test_a_deferred_job_of_an_array_has_no_program_either() -> None:
    _, events = after_array(20, ONCE, quota(8))
    deferred = [event for event in events if isinstance(event, JobDeferred)]
    assert len(deferred) == 12
    assert all(event.spec is not None and event.spec.env == {} for event in deferred)


def test_a_pool_of_an_earlier_release_repeats_it_as_before() -> None:
    _, events = after_array(3)
    (array,) = (event for event in events if isinstance(event, ArrayAccepted))
    assert not array.program_once and min(sizes(events)) > 16_000


def test_a_single_job_keeps_its_program() -> None:
    state = pool(ONCE)
    (job,) = (e for e in when(state, submit("j", **PROGRAM)) if isinstance(e, JobAdmitted))
    assert job.spec.env == PROGRAM["env"]


def test_the_end_of_an_array_is_recorded_once() -> None:
    state, _ = after_array(2, ONCE)
    first = [*when(state, placed(succeeded("a.0"))), *drain(state)]
    assert not [event for event in first if isinstance(event, ArrayEnded)]
    last = [*when(state, placed(succeeded("a.1"))), *drain(state)]
    assert [event for event in last if isinstance(event, ArrayEnded)] == [
        ArrayEnded(job_id="a", tenant="acme")
    ]
    assert not state.ended_arrays


def test_an_array_that_is_cancelled_before_its_jobs_ends_too() -> None:
    state = pool(ONCE, quota(0))
    when(state, submit("a", size=3, **PROGRAM))
    drain(state)
    events = [*when(state, cancel("a")), *drain(state)]
    assert "array.ended a" in summarize(events)


def test_an_array_is_bounded_in_what_its_jobs_repeat() -> None:
    labels = {f"l{n}": "v" * 8000 for n in range(2)}
    _, events = after_array(10_000, ONCE, node_selector=labels)
    assert summarize(events)[-1] == "job.rejected a too_large"
    detail = getattr(events[-1], "detail", "")
    assert detail.startswith("array_size: 10000: its jobs need 16")
    assert detail.endswith(f"at most {MAX_ARRAY_BYTES} are allowed")
