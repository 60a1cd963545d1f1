"""A submission: answered at once, and its job admitted, deferred or rejected."""

from __future__ import annotations

from collections.abc import Iterator

from services.admission.core.body import canonical, digest_of
from services.admission.core.dependencies import Standing, is_own, standing
from services.admission.core.ended import DIGEST_CHARS
from services.admission.core.need import need_of
from services.admission.core.rules import broken_rule
from services.admission.core.sayings import say
from services.admission.core.state import Job, Pool
from services.admission.core.verdict import Reject, verdict
from shared.contracts.jobs import ArrayAccepted, SubmitJob
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input


def submit(state: Pool, item: Input, wish: SubmitJob, now: int) -> Iterator[Decision]:
    body = canonical(wish.spec, wish.array_size)
    digest = digest_of(body)
    known = standing(state, wish.job_id)
    if known is not None:
        yield repeated(item, wish, known, digest)
        return
    job = Job(
        wish.job_id,
        wish.tenant,
        wish.spec,
        need_of(wish.spec),
        digest,
        now,
        cause=item.id,
        traceparent=item.traceparent,
    )
    found = (
        stranger(state, wish)
        or not_here(state, wish, len(body))
        or own_array(wish)
        or verdict(state, job, now)
    )
    if isinstance(found, Reject):
        yield refuse_command(item, wish.job_id, found.reason, found.detail, tenant=wish.tenant)
        yield say(job, found)
        return
    yield accept_command(item, wish.job_id, tenant=wish.tenant)
    yield say(job, found) if wish.array_size == 1 else array(item, wish, digest)


def repeated(item: Input, wish: SubmitJob, known: Standing, digest: str) -> Decision:
    """The same wish was granted before, or refused before; another one is a conflict."""
    same = known.tenant == wish.tenant and known.digest[:DIGEST_CHARS] == digest[:DIGEST_CHARS]
    if not same:
        detail = f"idempotency_key: {wish.idempotency_key!r}: was used with another body"
        return refuse_command(item, wish.job_id, "idempotency_conflict", detail, tenant=wish.tenant)
    if known.phase == "rejected":
        detail = f"idempotency_key: {wish.idempotency_key!r}: this body was rejected before"
        return refuse_command(item, wish.job_id, "already_rejected", detail, tenant=wish.tenant)
    return accept_command(item, wish.job_id, tenant=wish.tenant, duplicate=True)


def stranger(state: Pool, wish: SubmitJob) -> Reject | None:
    if state.pool is None or wish.pool != state.pool.pool:
        return Reject("unknown_pool", f"pool: {wish.pool!r}: this lane is of {state.name!r}")
    if not state.is_active(wish.tenant):
        return Reject("unknown_tenant", f"tenant: {wish.tenant!r}: is unknown or retired")
    return None


def not_here(state: Pool, wish: SubmitJob, body_bytes: int) -> Reject | None:
    return broken_rule(state.pool, wish, body_bytes) if state.pool else None


def own_array(wish: SubmitJob) -> Reject | None:
    """All jobs of an array have one spec: one that names its own array waits for itself."""
    for dependency in wish.spec.depends_on:
        if is_own(dependency, wish.job_id):
            return Reject("dependency_cycle", f"depends_on: {dependency!r}: is the job itself")
    return None


def array(item: Input, wish: SubmitJob, digest: str) -> Decision:
    return item.leads_to(
        ArrayAccepted(
            job_id=wish.job_id,
            tenant=wish.tenant,
            array_size=wish.array_size,
            spec=wish.spec,
            digest=digest,
        )
    )
