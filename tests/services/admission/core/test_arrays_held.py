"""Of an array with `array_at_once` no more jobs than that are under way."""

from __future__ import annotations

from typing import Any

import pytest

from services.admission.core.state import AdmissionState
from shared.contracts.admission import JobDeferred
from shared.contracts.command_answers import CommandRefused
from shared.ledger.decider import Input
from tests.services.admission.core.cases import (
    POOL,
    cancel,
    cancelled,
    drain,
    placed,
    pool,
    quota,
    submit,
    succeeded,
    summarize_jobs,
    when,
)


def new_pool(guaranteed: float = 100) -> AdmissionState:
    return pool(POOL.model_copy(update={"release": 1}), quota(guaranteed))


def array(size: int, at_once: int) -> Input:
    return submit("a", size=size, array_at_once=at_once)


def test_the_rest_of_an_array_is_held_with_the_numbers() -> None:
    state = new_pool()
    events = when(state, array(5, 2))
    held = [event for event in events if isinstance(event, JobDeferred)]
    assert [(event.job_id, event.reason) for event in held] == [
        (f"a.{index}", "array_limit") for index in (2, 3, 4)
    ]
    assert held[0].detail == {"under_way": 2, "ahead": 0}
    assert list(state.admitted) == ["a.0", "a.1"]


def test_each_end_lets_the_next_one_in_order_start() -> None:
    state = new_pool()
    when(state, array(5, 2))
    assert summarize_jobs(when(state, placed(succeeded("a.1")))) == ["job.admitted a.2"]
    assert summarize_jobs(when(state, placed(succeeded("a.0")))) == ["job.admitted a.3"]
    for index in (2, 3, 4):
        when(state, placed(succeeded(f"a.{index}")))
    assert not state.arrays and not state.deferred
    assert state.ended.get("a") is not None


@pytest.mark.parametrize("size", [3, 1000])
def test_an_array_below_its_number_is_as_one_without(size: int) -> None:
    state = new_pool(10_000)
    when(state, array(size, size))
    drain(state)
    assert (len(state.admitted), len(state.deferred)) == (size, 0)


def test_a_job_that_waits_for_quota_counts_and_its_cancel_lets_the_next_one_in() -> None:
    state = new_pool(guaranteed=1)
    when(state, array(4, 2))
    assert {job.job_id: job.reason for job in state.deferred.values()} == {
        "a.1": "quota",
        "a.2": "array_limit",
        "a.3": "array_limit",
    }
    events = when(state, cancel("a.1"))
    assert summarize_jobs([*events, *drain(state)]) == [
        "job.cancelled a.1",
        "job.deferred a.2 quota",
    ]


def test_a_held_job_that_is_cancelled_leaves_the_number_as_it_is() -> None:
    state = new_pool()
    when(state, array(4, 2))
    assert summarize_jobs(when(state, cancel("a.2"))) == ["job.cancelled a.2"]
    assert summarize_jobs(when(state, placed(succeeded("a.0")))) == ["job.admitted a.3"]


def test_the_cancel_of_an_array_admits_none_of_its_held_jobs() -> None:
    state = new_pool()
    when(state, array(6, 2))
    events = [*when(state, cancel("a")), *drain(state)]
    for job_id in ("a.0", "a.1"):
        events += [*when(state, placed(cancelled(job_id))), *drain(state)]
    assert not [name for name in summarize_jobs(events) if name.startswith("job.admitted")]
    assert not state.arrays and not state.deferred


@pytest.mark.parametrize("field", ["array_at_once", "array_first"])
def test_earlier_releases_read_no_range(field: str) -> None:
    spec: dict[str, Any] = {field: 1}
    answer, *_ = when(pool(), submit("a", size=2, **spec))
    assert isinstance(answer, CommandRefused)
    assert answer.detail == f"{field}: 1: must be absent until `berth upgrade finish`"
