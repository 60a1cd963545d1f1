"""A tenant gets no class, guarantee, pool or number of jobs beyond its bounds."""

from __future__ import annotations

from typing import Any

import pytest

from services.admission.core.state import AdmissionState
from shared.contracts.access import TenantRegistered
from shared.contracts.admission import JobAdmitted, JobRejected
from shared.contracts.attempts import JobCancelled, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.bounds import TenantBounds
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.job_commands import SubmitJob
from shared.ledger.decider import Input
from tests.harness.decider import an_input
from tests.services.admission.core.cases import cancel, command, placed, pool, submit, when


def bounded(**bounds: Any) -> AdmissionState:
    return pool(TenantNoted(tenant="acme", bounds=TenantBounds.model_validate(bounds)))


def rejection(state: AdmissionState, item: Input) -> tuple[str, str]:
    _, job = when(state, item)
    assert isinstance(job, JobRejected), job
    return job.reason, job.detail


def refusal(state: AdmissionState, item: Input) -> tuple[str, str]:
    """Return why the command is refused, which leaves no job."""
    [answer] = when(state, item)
    assert isinstance(answer, CommandRefused), answer
    return answer.reason, answer.detail


@pytest.mark.parametrize(
    ("bounds", "spec", "reason", "words"),
    [
        ({}, {"priority_class": "system"}, "class_not_allowed", "priority_class: 'system': high"),
        ({"highest_class": "low"}, {}, "class_not_allowed", "priority_class: 'normal': low is"),
        ({}, {"guaranteed_s": 9.5e8}, "above_bound", "guaranteed_s: '9.5e+08': at most 604800 s"),
        ({}, {"grace_s": 86400}, "above_bound", "grace_s: '86400': at most 3600 s"),
        ({"max_walltime_s": 60}, {"walltime_s": 61}, "above_bound", "walltime_s: '61'"),
        ({"max_walltime_s": 60}, {}, "above_bound", "walltime_s: 'absent'"),
        ({"max_job_gpus": 4}, {"workers": 5}, "above_bound", "'5 GPUs in all': at most 4"),
        (
            {"max_job_gpus": 4},
            {"workers": 2, "elastic": {"min_workers": 1, "max_workers": 8}},
            "above_bound",
            "'8 GPUs in all'",
        ),
        ({"pools": ["other"]}, {}, "pool_not_allowed", "pool: 'main': allowed are other"),
        ({"max_request_bytes": 256}, {"env": {"A": "x" * 300}}, "too_large", "at most 256 bytes"),
        (
            {},
            {"preemptible": False},
            "above_bound",
            "walltime_s: 'absent': at most 604800 s with preemptible: false for tenant acme",
        ),
    ],
)
def test_a_refusal_names_field_value_rule_and_who_changes_it(
    bounds: Any, spec: Any, reason: str, words: str
) -> None:
    refused, detail = rejection(bounded(**bounds), submit("j", **spec))
    assert refused == reason and words in detail
    assert "an administrator changes it: `berth tenants set acme " in detail


def test_a_tenant_of_an_earlier_release_keeps_what_it_had() -> None:
    item = submit("j", priority_class="system", guaranteed_s=9e8, grace_s=86400)
    assert isinstance(when(pool(), item)[1], JobAdmitted)


def test_an_operator_submits_what_the_tenant_may_not_but_in_its_pools_alone() -> None:
    submitted = submit("j", priority_class="system", guaranteed_s=9e8).message
    assert isinstance(submitted, SubmitJob)
    by_operator = submitted.model_copy(update={"by_operator": True})
    assert isinstance(when(bounded(), command(by_operator))[1], JobAdmitted)
    assert rejection(bounded(pools=["other"]), command(by_operator))[0] == "pool_not_allowed"


def test_jobs_that_ended_make_room_for_others() -> None:
    state = bounded(max_open_jobs=3)
    when(state, submit("a"), submit("late", depends_on=["a"]), submit("b"))
    assert refusal(state, submit("c"))[0] == "too_many_jobs"
    when(state, cancel("late"))
    when(state, submit("d"))
    assert refusal(state, submit("e"))[0] == "too_many_jobs"
    end = JobSucceeded(job_id="a", tenant="acme", attempt=1, started_at=1, exit_codes=(0,))
    when(state, placed(end))
    assert isinstance(when(state, submit("f"))[1], JobAdmitted)


def test_a_job_too_many_can_be_tried_again_under_its_key() -> None:
    state = bounded(max_open_jobs=9)
    reason, detail = refusal(state, submit("j", size=10))
    assert (reason, detail.split(":")[0]) == ("too_many_jobs", "array_size")
    assert "0 jobs wait or run" in detail and "berth tenants set acme max_open_jobs=" in detail
    assert len(state.ended) == 0 and "j" not in state.arrays
    accepted = when(state, submit("j", size=9))[0]
    assert isinstance(accepted, CommandAccepted) and not accepted.duplicate


def test_repeated_jobs_of_an_array_are_open_jobs_too() -> None:
    """They keep their index, and belong to no array."""
    state = bounded(max_open_jobs=2)
    for job_id in ("a", "b"):
        submitted = submit(job_id).message
        assert isinstance(submitted, SubmitJob)
        again = submitted.model_copy(update={"array_index": 4})
        assert isinstance(when(state, command(again))[1], JobAdmitted)
    assert refusal(state, submit("c"))[0] == "too_many_jobs"
    when(state, cancel("a"))
    when(state, placed(JobCancelled(job_id="a", tenant="acme")))
    assert state.open_jobs == {"acme": 1}


def test_the_bounds_come_from_the_registration_of_the_tenant() -> None:
    state, bounds = pool(), TenantBounds(highest_class="low")
    registered = TenantRegistered(tenant="acme", default_pool="main", bounds=bounds)
    noted: list[Event] = when(state, an_input(registered, "access"))
    assert noted == [TenantNoted(tenant="acme", bounds=bounds)]
    assert rejection(state, submit("j"))[0] == "class_not_allowed"
