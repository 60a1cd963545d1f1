from __future__ import annotations

import pytest

from shared.contracts.base import Event
from tests.services.admission.core.cases import (
    cancelled,
    failed,
    placed,
    pool,
    submit,
    succeeded,
    summarize,
    summarize_jobs,
    when,
)


def test_a_job_waits_for_all_that_it_depends_on() -> None:
    state = pool()
    when(state, submit("a"), submit("b"))
    events = when(state, submit("c", depends_on=("a", "b")))
    assert summarize_jobs(events) == ["job.deferred c dependency"]
    assert summarize_jobs(when(state, placed(succeeded("a")))) == []
    assert summarize_jobs(when(state, placed(succeeded("b")))) == ["job.admitted c"]


def test_a_dependency_that_has_succeeded_defers_no_job() -> None:
    state = pool()
    when(state, submit("a"))
    when(state, placed(succeeded("a")))
    assert summarize_jobs(when(state, submit("b", depends_on=("a",)))) == ["job.admitted b"]


@pytest.mark.parametrize("end", [failed("a"), cancelled("a")])
def test_a_failed_dependency_rejects_its_dependents(end: Event) -> None:
    state = pool()
    when(state, submit("a"))
    when(state, submit("b", depends_on=("a",)), submit("c", depends_on=("b",)))
    assert summarize_jobs(when(state, placed(end))) == [
        "job.rejected b dependency_failed",
        "job.rejected c dependency_failed",
    ]
    assert summarize_jobs(when(state, submit("d", depends_on=("a",)))) == [
        "job.rejected d dependency_failed"
    ]


@pytest.mark.parametrize(
    ("dependency", "reason"),
    [("ghost", "dependency_missing"), ("theirs", "dependency_missing"), ("me", "dependency_cycle")],
)
def test_a_dependency_that_can_never_be_met_is_refused(dependency: str, reason: str) -> None:
    state = pool()
    when(state, submit("theirs", "beta"))
    summaries = summarize(when(state, submit("me", depends_on=(dependency,))))
    assert summaries[1] == f"job.rejected me {reason}"


def test_an_array_may_not_depend_on_one_of_its_own_jobs() -> None:
    events = when(pool(), submit("me", size=3, depends_on=("me.0",)))
    assert summarize_jobs(events) == ["job.rejected me dependency_cycle"]
