"""Reconsiders the jobs whose wait is over; the cost depends on their number alone."""

from __future__ import annotations

from collections.abc import Generator

from services.admission.core.body import canonical_body
from services.admission.core.cancel import answer_array_cancels, cancel_next_array_job
from services.admission.core.demand import demand_of
from services.admission.core.quota import next_within_quota
from services.admission.core.state import AdmissionState, PendingJob
from services.admission.core.verdict import judge
from services.admission.core.verdict_events import verdict_decision
from shared.contracts.admission import ArrayEnded, JobReadmitted
from shared.ledger.decider import Decision

BUDGET_BYTES = 96 * 1024
"""Bytes of events in one call: the next record follows at once with more."""
ENVELOPE_BYTES = 1024


def reconsider(
    state: AdmissionState, now: int, budget_bytes: int
) -> Generator[Decision, None, int]:
    """Return the bytes spent; a job that is larger than the whole budget goes alone.

    Each step leads to an event, so that `next_due` comes to an end.
    """
    spent = 0
    while state.retry_times and state.retry_times[0][0] <= now and spent < budget_bytes:
        spent += ENVELOPE_BYTES
        yield readmission(state, state.retry_times[0][1])
    while state.cancelling and spent < budget_bytes:
        decision, reason_bytes = cancel_next_array_job(state)
        spent += ENVELOPE_BYTES + reason_bytes
        yield decision
    while spent < budget_bytes and (job := next_job(state, now)):
        size_bytes = len(canonical_body(job.spec, 1)) + ENVELOPE_BYTES
        if spent and spent + size_bytes > budget_bytes:
            break
        spent += size_bytes
        yield verdict_decision(job, judge(state, job, now))
    yield from answer_array_cancels(state)
    for job_id, tenant in list(state.ended_arrays.items()):
        yield Decision(ArrayEnded(job_id=job_id, tenant=tenant))
    return spent


def next_job(state: AdmissionState, now: int) -> PendingJob | None:
    """Return the next job on which a verdict is due, or None."""
    waiting = state.waiting
    if waiting.ready:
        return state.deferred[next(iter(waiting.ready))]
    if waiting.awaiting_nodes and state.node_kinds and now >= state.nodes_settled_at:
        return state.deferred[next(iter(waiting.awaiting_nodes))]
    return next_within_quota(state) or next_of_array(state)


def next_of_array(state: AdmissionState) -> PendingJob | None:
    """Create the next job of the first array that is not complete."""
    if not state.expanding:
        return None
    array = state.arrays[next(iter(state.expanding))]
    return PendingJob(
        f"{array.job_id}.{array.next_index}",
        array.tenant,
        array.spec,
        demand_of(array.spec),
        array.digest,
        array.submitted_at,
        array.next_index,
        array.cause,
        array.traceparent,
    )


def readmission(state: AdmissionState, job_id: str) -> Decision:
    job, backoff = state.admitted[job_id], state.backoffs[job_id]
    event = JobReadmitted(
        job_id=job_id, tenant=job.tenant, attempt=backoff.attempt + 1, avoid_nodes=job.avoid_nodes
    )
    return Decision(event, backoff.cause, backoff.traceparent)


def next_due(state: AdmissionState) -> int | None:
    """Return when to reconsider, ms; 0 is at once, None is never."""
    waiting = state.waiting
    if state.pending_answers or state.cancelling or state.ended_arrays:
        return 0
    if waiting.ready or state.expanding or next_within_quota(state) is not None:
        return 0
    times = [state.nodes_settled_at] if waiting.awaiting_nodes and state.node_kinds else []
    times += [at for at, _ in state.retry_times[:1]]
    return min(times, default=None)
