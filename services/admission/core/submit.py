"""Submissions: each is answered at once, and its job admitted, deferred or rejected.

A submission that is refused for now alone leaves no job: the same key can be tried again.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.admission.core.body import canonical_body, digest_of
from services.admission.core.demand import demand_of
from services.admission.core.dependencies import JobStatus, find_status, is_own
from services.admission.core.ended_jobs import DIGEST_CHARS
from services.admission.core.rules import check_rules
from services.admission.core.state import AdmissionState, PendingJob
from services.admission.core.tenant_bounds import check_bounds
from services.admission.core.verdict import Reject, judge
from services.admission.core.verdict_events import verdict_decision
from shared.contracts.admission import ArrayAccepted
from shared.contracts.job_commands import SubmitJob
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input


def submit_job(
    state: AdmissionState, item: Input, command: SubmitJob, now: int
) -> Iterator[Decision]:
    body = canonical_body(command.spec, command.array_size)
    digest = digest_of(body)
    status = find_status(state, command.job_id)
    if status is not None:
        yield answer_repeated(item, command, status, digest)
        return
    job = PendingJob(
        command.job_id,
        command.tenant,
        command.spec,
        demand_of(command.spec),
        digest,
        now,
        command.array_index,
        cause=item.id,
        traceparent=item.traceparent,
    )
    verdict = (
        check_sender(state, command)
        or check_bounds(state, command, len(body))
        or check_spec(state, command, len(body))
        or check_own_array(command)
        or judge(state, job, now)
    )
    tenant = command.tenant
    if isinstance(verdict, Reject):
        yield refuse_command(item, job.job_id, verdict.reason, verdict.detail, tenant=tenant)
        if verdict.is_final:
            yield verdict_decision(job, verdict)
        return
    yield accept_command(item, job.job_id, tenant=tenant)
    if command.array_size == 1:
        yield verdict_decision(job, verdict)
    else:
        yield accept_array(state, item, command, digest)


def answer_repeated(item: Input, command: SubmitJob, status: JobStatus, digest: str) -> Decision:
    """Accept the same body under the same key as a duplicate; refuse another body."""
    job_id, tenant = command.job_id, command.tenant
    same_body = status.digest[:DIGEST_CHARS] == digest[:DIGEST_CHARS]
    if status.tenant != tenant or not same_body:
        detail = f"idempotency_key: {command.idempotency_key!r}: was used with another body"
        return refuse_command(item, job_id, "idempotency_conflict", detail, tenant=tenant)
    if status.phase == "rejected":
        detail = f"idempotency_key: {command.idempotency_key!r}: this body was rejected before"
        return refuse_command(item, job_id, "already_rejected", detail, tenant=tenant)
    return accept_command(item, job_id, tenant=tenant, duplicate=True)


def check_sender(state: AdmissionState, command: SubmitJob) -> Reject | None:
    if state.pool is None or command.pool != state.pool.pool:
        detail = f"pool: {command.pool!r}: this lane serves pool {state.pool_name!r}"
        return Reject("unknown_pool", detail)
    if state.deleted is not None:
        return Reject("unknown_pool", f"pool: {command.pool!r}: was deleted", is_final=False)
    if not state.is_active(command.tenant):
        return Reject("unknown_tenant", f"tenant: {command.tenant!r}: unknown or retired")
    if not state.pool.is_open_to(command.tenant):
        # The other tenants of the list are not this tenant's to know.
        rule = f"tenant {command.tenant!r} is not in the pool's setting `tenants`"
        return Reject("tenant_not_allowed", f"pool: {command.pool!r}: {rule}")
    return None


def check_spec(state: AdmissionState, command: SubmitJob, body_bytes: int) -> Reject | None:
    return check_rules(state.pool, command, body_bytes) if state.pool else None


def check_own_array(command: SubmitJob) -> Reject | None:
    """Reject a spec that depends on its own job or array, which would wait for itself."""
    for dependency in command.spec.depends_on:
        if is_own(dependency, command.job_id):
            return Reject("dependency_cycle", f"depends_on: {dependency!r}: is the job itself")
    return None


def accept_array(state: AdmissionState, item: Input, command: SubmitJob, digest: str) -> Decision:
    return item.decision(
        ArrayAccepted(
            job_id=command.job_id,
            tenant=command.tenant,
            array_size=command.array_size,
            spec=command.spec,
            digest=digest,
            program_once=state.pool is not None and state.pool.programs_once,
        )
    )
