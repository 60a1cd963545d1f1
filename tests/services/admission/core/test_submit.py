from __future__ import annotations

from typing import Any

import pytest

from services.admission.core.rules import MAX_BODY_BYTES
from shared.contracts.admission import JobAdmitted, JobDeferred, JobRejected
from shared.contracts.bookkeeping import CapacityNoted, TenantNoted
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.job_commands import SubmitJob
from tests.harness.decider import fold, given, run_facts
from tests.services.admission.core.cases import (
    ADMISSION,
    NOW,
    POOL,
    placed,
    pool,
    quota,
    shape,
    submit,
    succeeded,
    summarize,
    summarize_jobs,
    when,
)


def refusal(events: list[Any]) -> CommandRefused:
    """Return the refusal; a refused submit is one answer and one rejected job of one reason."""
    answer, job = events
    assert isinstance(answer, CommandRefused)
    assert isinstance(job, JobRejected)
    assert (answer.reason, answer.detail) == (job.reason, job.detail)
    return answer


def test_a_plain_job_is_answered_and_admitted() -> None:
    item = submit("j1")
    answer, job = when(pool(), item)
    assert answer == CommandAccepted(
        command_id=item.id, command_type="job.submit.v1", of="j1", tenant="acme"
    )
    assert isinstance(job, JobAdmitted)
    assert (job.job_id, job.tenant, job.submitted_at, job.borrowed) == ("j1", "acme", NOW, False)
    assert len(job.digest) == 32


def test_a_job_that_repeats_one_of_an_array_has_its_index() -> None:
    item = submit("j1")
    assert isinstance(item.message, SubmitJob)
    again = item._replace(message=item.message.model_copy(update={"array_index": 7}))
    state = pool()
    _, job = when(state, again)
    assert isinstance(job, JobAdmitted) and job.array_index == 7
    when(state, placed(succeeded("j1")))
    assert state.ended.get("j1") is not None and not state.arrays


def test_events_carry_the_cause_and_the_trace_of_the_submission() -> None:
    item = submit("j1")
    for fact in run_facts(ADMISSION, pool(), [item], NOW):
        assert (fact.cause, fact.traceparent) == (item.id, item.traceparent)


def test_a_command_delivered_twice_is_answered_once() -> None:
    state, item = pool(), submit("j1")
    assert len(when(state, item, item)) == 2
    assert when(state, item) == []


def test_the_same_key_with_the_same_body_is_a_duplicate() -> None:
    state = pool()
    when(state, submit("j1", env={"A": "1", "B": "2"}))
    (answer,) = when(state, submit("j1", env={"B": "2", "A": "1"}))
    assert isinstance(answer, CommandAccepted)
    assert answer.duplicate


@pytest.mark.parametrize(
    "again", [{"gpus": 2}, {"size": 2}, {"tenant": "beta"}, {"env": {"A": "1"}}]
)
def test_the_same_key_with_another_body_is_refused_and_the_job_not_affected(
    again: dict[str, Any],
) -> None:
    state = pool()
    when(state, submit("j1"))
    (answer,) = when(state, submit("j1", **again))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == "idempotency_conflict"
    assert "j1" in state.admitted


def test_a_key_of_a_rejected_job_cannot_be_used_again() -> None:
    state = pool()
    when(state, submit("j1", gpus=64))
    (answer,) = when(state, submit("j1", gpus=64))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == "already_rejected"
    (answer,) = when(state, submit("j1", gpus=1))
    assert isinstance(answer, CommandRefused)
    assert answer.reason == "idempotency_conflict"


def test_an_unknown_tenant_is_refused() -> None:
    assert refusal(when(pool(), submit("j1", tenant="ghost"))).reason == "unknown_tenant"


def test_a_retired_tenant_is_refused() -> None:
    state = pool(TenantNoted(tenant="acme", active=False))
    assert refusal(when(state, submit("j1"))).reason == "unknown_tenant"


def test_a_pool_that_names_its_tenants_refuses_others_and_keeps_what_it_has() -> None:
    state = pool()
    when(state, submit("j1"))
    assert "j1" in state.admitted
    closed = pool(POOL.model_copy(update={"tenants": ("beta",)}))
    refused = refusal(when(closed, submit("j2")))
    assert refused.reason == "tenant_not_allowed"
    rule = "tenant 'acme' is not in the pool's setting `tenants`"
    assert refused.detail == f"pool: 'main': {rule}"
    when(closed, submit("j3", tenant="beta"))
    assert "j3" in closed.admitted


def test_a_lane_without_a_pool_refuses_submissions() -> None:
    assert refusal(when(given(ADMISSION), submit("j1"))).reason == "unknown_pool"


def test_a_job_for_another_pool_is_refused() -> None:
    assert refusal(when(pool(), submit("j1", pool="other"))).reason == "unknown_pool"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"workers": 5, "elastic": {"min_workers": 1, "max_workers": 4}}, "gang.workers: 5"),
        ({"spot": True, "preemptible": False}, "preemptible: false"),
        ({"spot": True, "guaranteed_s": 60}, "guaranteed_s: 60"),
    ],
)
def test_fields_that_contradict_each_other_are_named(spec: dict[str, Any], field: str) -> None:
    answer = refusal(when(pool(), submit("j1", **spec)))
    assert answer.reason == "invalid_spec"
    assert answer.detail.startswith(field)


def test_a_pool_of_agents_requires_a_command() -> None:
    agents = POOL.model_copy(update={"backends": ("agent",)})
    assert refusal(when(pool(agents), submit("j1"))).detail.startswith("command: ()")
    assert summarize_jobs(when(pool(agents), submit("j1", command=("true",)))) == [
        "job.admitted j1"
    ]


def test_a_body_too_large_for_a_ledger_is_refused() -> None:
    args = ("x" * 8000,) * (MAX_BODY_BYTES // 8000 + 1)
    assert refusal(when(pool(), submit("j1", command=args))).reason == "too_large"


def test_an_array_with_too_long_job_ids_is_refused() -> None:
    answer = refusal(when(pool(), submit("j" * 63, size=10)))
    assert answer.detail.startswith("job_id")


@pytest.mark.parametrize(
    ("spec", "number"),
    [
        ({"gpus": 16}, "could hold 0 workers of 16 GPUs each"),
        ({"gpus": 8, "workers": 3}, "could hold 2 workers of 8 GPUs each"),
        ({"gpus": 0.6, "workers": 17}, "could hold 16 workers"),
        ({"gpu_types": ("a100",)}, "a100"),
        ({"node_selector": {"rack": "r9"}}, "rack=r9"),
    ],
)
def test_a_job_that_can_never_fit_is_rejected_with_its_numbers(
    spec: dict[str, Any], number: str
) -> None:
    answer = refusal(when(pool(), submit("j1", **spec)))
    assert answer.reason == "infeasible"
    assert number in answer.detail


@pytest.mark.parametrize(
    "spec",
    [
        {"gpus": 8, "workers": 2},
        {"gpus": 0.5, "workers": 32},
        {"gpus": 0, "workers": 40},
        {"gpus": 8, "workers": 3, "elastic": {"min_workers": 2, "max_workers": 4}},
        {"gpu_types": ("a100", "h100")},
    ],
)
def test_a_job_that_fits_an_empty_pool_is_admitted(spec: dict[str, Any]) -> None:
    assert summarize_jobs(when(pool(), submit("j1", **spec))) == ["job.admitted j1"]


def test_a_selector_is_met_by_labels() -> None:
    state = pool(CapacityNoted(joined=(shape("n3", labels={"rack": "r9", "zone": "a"}),)))
    later = NOW + 1
    events = when(state, submit("j1", node_selector={"rack": "r9"}), now=later)
    assert summarize_jobs(events) == ["job.admitted j1"]


def test_above_its_guaranteed_share_a_job_borrows() -> None:
    state = pool(quota(2, borrow=1))
    events = when(state, *(submit(f"j{n}") for n in range(4)))
    admitted = [e.borrowed for e in events if isinstance(e, JobAdmitted)]
    assert admitted == [False, False, True]
    assert summarize(events)[-1] == "job.deferred j3 quota"


def test_a_deferral_carries_the_numbers_and_the_spec() -> None:
    _, job = when(pool(quota(2)), submit("j1", gpus=3.0))
    assert isinstance(job, JobDeferred)
    assert job.detail == {
        "asked_gpus": 3,
        "used_gpus": 0,
        "ahead": 0,
        "bound_gpus": 2,
        "guaranteed_gpus": 2,
    }
    assert job.spec is not None


def test_spot_jobs_count_against_the_spot_quota_alone() -> None:
    state = pool(quota(0, spot=1))
    events = when(state, submit("j1", spot=True), submit("j2", spot=True))
    assert summarize_jobs(events) == ["job.admitted j1", "job.deferred j2 spot_quota"]


def test_a_tenant_without_a_spot_quota_shares_that_of_the_pool() -> None:
    state = pool(POOL.model_copy(update={"spot_gpus": 1.0}))
    events = when(state, submit("j1", "beta", spot=True), submit("j2", spot=True))
    assert summarize_jobs(events) == ["job.admitted j1", "job.deferred j2 spot_quota"]


def test_the_state_is_the_fold_of_its_own_events() -> None:
    state = given(ADMISSION)
    events = when(state, submit("j1"), submit("j2", size=3))
    assert fold(ADMISSION, ADMISSION.initial(0), events, at=NOW).ended == state.ended
