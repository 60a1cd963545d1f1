"""A user gets nothing beyond its own bounds within those of its tenant, in every pool by itself."""

from __future__ import annotations

from typing import Any

import pytest

from services.admission.core.state import AdmissionState
from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.admission import JobAdmitted, JobDeferred, JobRejected
from shared.contracts.attempts import JobSucceeded
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted, UserNoted
from shared.contracts.bounds import TenantBounds, UserBounds
from shared.contracts.command_answers import CommandRefused
from shared.contracts.job_commands import SubmitJob
from shared.contracts.transfers import Transferred
from shared.contracts.users import UserDeleted, UserRegistered
from shared.ledger.decider import Input
from tests.harness.decider import an_input
from tests.services.admission.core.cases import (
    POOL,
    cancel,
    command,
    placed,
    pool,
    set_quota,
    submit,
    summarize_jobs,
    when,
)


def bounded(**bounds: Any) -> AdmissionState:
    """Return a pool in which user ada of acme has these bounds, and other users have none."""
    noted = UserNoted(tenant="acme", user="ada", bounds=UserBounds.model_validate(bounds))
    return pool(TenantNoted(tenant="acme"), noted)


def outcome(state: AdmissionState, item: Input) -> Event:
    return when(state, item)[-1]


@pytest.mark.parametrize(
    ("bounds", "spec", "reason", "words"),
    [
        ({"highest_class": "low"}, {}, "class_not_allowed", "low is the highest class allowed"),
        ({"max_guaranteed_s": 60}, {"guaranteed_s": 61}, "above_bound", "at most 60 s"),
        ({"max_walltime_s": 60}, {}, "above_bound", "walltime_s: 'absent'"),
        ({"max_grace_s": 5}, {"grace_s": 6}, "above_bound", "at most 5 s"),
        ({"max_job_gpus": 4}, {"workers": 5}, "above_bound", "'5 GPUs in all': at most 4"),
        ({"pools": ["other"]}, {}, "pool_not_allowed", "allowed are other"),
        ({"max_request_bytes": 256}, {"env": {"A": "x" * 300}}, "too_large", "at most 256 bytes"),
    ],
)
def test_a_refusal_names_the_user_and_who_changes_its_bound(
    bounds: Any, spec: Any, reason: str, words: str
) -> None:
    state = bounded(**bounds)
    rejected = outcome(state, submit("j", user="ada", **spec))
    assert isinstance(rejected, JobRejected) and rejected.reason == reason
    assert words in rejected.detail and "for user ada of acme" in rejected.detail
    assert "`berth users set ada --tenant acme " in rejected.detail
    assert isinstance(outcome(state, submit("o", user="bob", **spec)), JobAdmitted)
    other_tenant = bounded(**bounds)
    when(other_tenant, an_input(TenantRegistered(tenant="beta", default_pool="main"), "access"))
    item = submit("b", tenant="beta", user="ada", **spec)
    assert isinstance(outcome(other_tenant, item), JobAdmitted)


def test_the_narrower_of_tenant_and_user_holds() -> None:
    state = bounded(max_job_gpus=4)
    tenant = TenantNoted(tenant="acme", bounds=TenantBounds(max_job_gpus=2))
    registered = TenantRegistered(tenant="acme", default_pool="main", bounds=tenant.bounds)
    when(state, an_input(registered, "access"))
    rejected = outcome(state, submit("j", user="ada", workers=3))
    assert isinstance(rejected, JobRejected) and "for tenant acme" in rejected.detail


def test_operators_are_bound_by_pools_and_gpus_of_a_user_and_by_no_class() -> None:
    item = submit("j", user="ada", priority_class="system").message
    assert isinstance(item, SubmitJob)
    by_operator = command(item.model_copy(update={"by_operator": True}))
    assert isinstance(outcome(bounded(highest_class="low"), by_operator), JobAdmitted)
    assert isinstance(outcome(bounded(pools=["other"]), by_operator), JobRejected)


def test_jobs_of_a_user_that_ended_make_room_for_its_others() -> None:
    state = bounded(max_open_jobs=3)
    when(state, submit("a", user="ada"), submit("arr", user="ada", size=2))
    for _ in range(2):
        when(state, submit("of-bob", user="bob"))
    refused = outcome(state, submit("b", user="ada"))
    assert isinstance(refused, CommandRefused) and refused.reason == "too_many_jobs"
    assert "3 jobs wait or run" in refused.detail and "user ada of acme" in refused.detail
    end = JobSucceeded(job_id="a", tenant="acme", attempt=1, started_at=1, exit_codes=(0,))
    when(state, placed(end))
    assert isinstance(outcome(state, submit("b", user="ada")), JobAdmitted), "the key again"
    late = submit("late", user="ada", depends_on=["b"])
    assert isinstance(outcome(state, late), CommandRefused)
    when(state, cancel("arr"))
    assert state.open_jobs["acme"] == sum(state.open_jobs_of_users.values())


def waits(state: AdmissionState, item: Input) -> dict[str, float | str]:
    deferred = outcome(state, item)
    assert isinstance(deferred, JobDeferred) and deferred.reason == "user_gpus"
    return deferred.detail


def succeeded(job_id: str) -> Input:
    end = JobSucceeded(job_id=job_id, tenant="acme", attempt=1, started_at=1, exit_codes=(0,))
    return placed(end)


def test_jobs_beyond_the_gpus_of_a_user_wait_and_hold_up_no_other_user() -> None:
    state = bounded(max_gpus=4)
    when(state, submit("a", user="ada", gpus=3))
    figures = waits(state, submit("b", user="ada", gpus=2, spot=True))
    known = {"user": "ada", "asked_gpus": 2.0, "used_gpus": 3.0, "ahead": 0, "bound_gpus": 4.0}
    assert figures == known
    assert waits(state, submit("c", user="ada", gpus=1))["ahead"] == 1, "it fits, and is second"
    assert waits(state, submit("large", user="ada", gpus=8))["ahead"] == 2
    assert isinstance(outcome(state, submit("o", user="bob", gpus=8)), JobAdmitted)
    assert summarize_jobs(when(state, succeeded("a"))) == ["job.admitted b", "job.admitted c"]
    assert waits(state, submit("d", user="ada", gpus=2))["used_gpus"] == 3.0
    when(state, cancel("c"))
    assert "d" in state.deferred, "what runs counts until it has ended"


def test_a_changed_bound_of_gpus_holds_for_jobs_that_wait() -> None:
    state = bounded(max_gpus=1)
    when(state, submit("a", user="ada"), submit("b", user="ada"), submit("c", user="ada", gpus=3))
    assert set(state.deferred) == {"b", "c"}
    raised = UserRegistered(tenant="acme", user="ada", bounds=UserBounds(max_gpus=2))
    assert summarize_jobs(when(state, an_input(raised, "access"))) == ["job.admitted b"]
    deleted = UserDeleted(tenant="acme", user="ada")
    assert summarize_jobs(when(state, an_input(deleted, "access"))) == ["job.admitted c"]
    assert not (state.waiting.user_queues or state.waiting.user_oversized or state.waiting.ready)


def test_a_job_of_a_user_with_room_still_waits_for_the_quota_of_its_tenant() -> None:
    state = bounded(max_gpus=2)
    when(state, set_quota(2), submit("a", user="ada", gpus=2), submit("b", user="ada", gpus=2))
    when(state, submit("o", user="bob"))
    assert {job.reason for job in state.deferred.values()} == {"user_gpus", "quota"}
    events = when(state, succeeded("a"))
    assert summarize_jobs(events) == ["job.admitted o", "job.deferred b quota"]
    assert summarize_jobs(when(state, succeeded("o"))) == ["job.admitted b"]


def test_bounds_come_from_access_and_end_with_the_user_or_its_tenant() -> None:
    state, bounds = pool(), UserBounds(max_open_jobs=0)
    registered = UserRegistered(tenant="acme", user="ada", bounds=bounds)
    noted: list[Event] = when(state, an_input(registered, "access"))
    assert noted == [UserNoted(tenant="acme", user="ada", bounds=bounds)]
    assert when(state, an_input(registered, "access")) == [], "repeated history"
    assert isinstance(outcome(state, submit("j", user="ada")), CommandRefused)
    deleted = UserDeleted(tenant="acme", user="ada")
    assert when(state, an_input(deleted, "access")) == [UserNoted(tenant="acme", user="ada")]
    assert isinstance(outcome(state, submit("j", user="ada")), JobAdmitted)
    when(state, an_input(registered, "access"))
    again = TenantRegistered(tenant="acme", default_pool="main")
    when(state, an_input(TenantRetired(tenant="acme"), "access"), an_input(again, "access"))
    assert not state.users["acme"], "registered anew in the same batch, it has no users"


@pytest.mark.parametrize("bounds", [{"max_open_jobs": 0}, {"pools": ["other"]}])
def test_a_job_that_comes_from_another_pool_was_accepted_there(bounds: Any) -> None:
    before = Transferred(from_job_id="a", from_pool="first", first_job_id="a", transfers=1)
    state = bounded(**bounds)
    assert isinstance(outcome(state, submit("j", user="ada")), JobRejected | CommandRefused)
    arrived = submit("j", user="ada", pools=("first", "main"), transferred=before)
    noted = UserNoted(tenant="acme", user="ada", bounds=UserBounds.model_validate(bounds))
    finished = POOL.model_copy(update={"release": 1})
    there = pool(finished, TenantNoted(tenant="acme"), noted)
    assert isinstance(outcome(there, arrived), JobAdmitted)
