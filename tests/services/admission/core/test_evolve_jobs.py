from __future__ import annotations

from services.admission.core.evolve_jobs import charge
from services.admission.core.state import AdmissionState, Owner, QuotaUse
from shared.contracts.admission import JobAdmitted, JobDeferred, JobReadmitted, JobRejected
from shared.contracts.attempts import JobCancelled
from shared.contracts.bookkeeping import AttemptNoted, JobEnd, JobSizeNoted, JobsReleased
from shared.contracts.job_spec import JobSpec
from tests.services.admission.core.cases import NOW, pool

SPEC = JobSpec.model_validate({"name": "train", "gang": {"workers": 2, "gpus_per_worker": 0.5}})
ADMITTED = JobAdmitted(job_id="j1", tenant="acme", submitted_at=NOW, spec=SPEC, digest="ab" * 5)
DEFERRED = JobDeferred(job_id="j1", tenant="acme", reason="quota", spec=SPEC, digest="ab" * 5)


def released(outcome: str) -> JobsReleased:
    return JobsReleased(ends=(JobEnd.model_validate({"job_id": "j1", "outcome": outcome}),))


def attempt(number: int, not_before: int) -> AttemptNoted:
    return AttemptNoted(job_id="j1", attempt=number, node_ids=("n1",), not_before=not_before)


def test_an_admitted_job_is_charged_and_no_longer_deferred() -> None:
    state = pool(DEFERRED, ADMITTED)
    assert state.deferred == {}
    assert state.quota_use.regular == {"acme": 1000}
    assert state.waiting.quota_queues == {}


def test_a_deferred_job_waits_where_its_last_reason_says() -> None:
    state = pool(DEFERRED, JobDeferred(job_id="j1", tenant="acme", reason="no_nodes"))
    assert state.waiting.quota_queues == {}
    assert list(state.waiting.awaiting_nodes) == ["j1"]


def test_a_released_job_is_ended_and_its_quota_free() -> None:
    state = pool(ADMITTED, released("failed"))
    assert (state.admitted, state.quota_use.regular) == ({}, {})
    ended = state.ended.get("j1")
    assert ended is not None
    assert ended.outcome == "failed"


def test_the_release_of_an_unknown_job_changes_nothing() -> None:
    assert pool(released("failed")) == pool()


def test_a_rejected_job_is_ended() -> None:
    rejected = JobRejected(job_id="j1", tenant="acme", reason="infeasible", digest="ab" * 5)
    ended = pool(DEFERRED, rejected).ended.get("j1")
    assert ended is not None
    assert ended.outcome == "rejected"


def test_only_a_deferred_job_is_ended_by_its_cancel() -> None:
    cancelled = JobCancelled(job_id="j1", tenant="acme")
    assert pool(DEFERRED, cancelled).ended.get("j1") is not None
    assert "j1" in pool(ADMITTED, cancelled).admitted


def test_a_resized_job_is_charged_for_its_new_size() -> None:
    state = pool(ADMITTED, JobSizeNoted(job_id="j1", workers=5))
    assert state.quota_use.regular == {"acme": 2500}


def test_a_failed_attempt_backs_off_and_avoids_its_node() -> None:
    state = pool(ADMITTED, attempt(1, NOW + 10))
    assert state.retry_times == [(NOW + 10, "j1")]
    assert state.admitted["j1"].avoid_nodes == ("n1",)


def test_a_readmitted_job_leaves_no_retry_time() -> None:
    readmitted = JobReadmitted(job_id="j1", tenant="acme", attempt=2)
    state = pool(ADMITTED, attempt(1, NOW + 10), readmitted)
    assert (state.backoffs, state.retry_times) == ({}, [])


def test_a_job_that_ends_while_it_backs_off_leaves_no_retry_time() -> None:
    state = pool(ADMITTED, attempt(1, NOW + 10), released("cancelled"))
    assert (state.backoffs, state.retry_times) == ({}, [])


def test_a_tenant_that_uses_nothing_has_no_entry() -> None:
    state, ada = AdmissionState(0), Owner("acme", "ada")
    use = state.quota_use
    charge(state, ada, 500, spot=True)
    assert (use.spot, use.spot_total, use.of_users) == ({"acme": 500}, 500, {ada: 500})
    charge(state, ada, -500, spot=True)
    assert use == QuotaUse()
