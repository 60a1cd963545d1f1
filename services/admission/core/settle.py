"""Looks again at those whose wait is over; what it costs depends on how many they are."""

from __future__ import annotations

from collections.abc import Generator

from services.admission.core.body import canonical
from services.admission.core.cancel import answers_owed, next_of_array
from services.admission.core.need import need_of
from services.admission.core.quota import next_in_line
from services.admission.core.sayings import say
from services.admission.core.state import Job, Pool
from services.admission.core.verdict import verdict
from shared.contracts.jobs import JobReadmitted
from shared.ledger.decider import Decision

BUDGET_BYTES = 96 * 1024
"""Of events in one call: the rest comes in the next record, at once."""
ENVELOPE_BYTES = 1024


def settle(state: Pool, now: int, budget_bytes: int) -> Generator[Decision, None, int]:
    """Returns the bytes it spent; one that is larger than the whole budget goes alone.

    Each thing it looks at leads to an event, so that `due` comes to an end.
    """
    spent = 0
    while state.alarms and state.alarms[0][0] <= now and spent < budget_bytes:
        spent += ENVELOPE_BYTES
        yield readmission(state, state.alarms[0][1])
    while state.cancelling and spent < budget_bytes:
        decision, reason_bytes = next_of_array(state)
        spent += ENVELOPE_BYTES + reason_bytes
        yield decision
    while spent < budget_bytes and (job := next_ready(state, now)):
        size = len(canonical(job.spec, 1)) + ENVELOPE_BYTES
        if spent and spent + size > budget_bytes:
            break
        spent += size
        yield say(job, verdict(state, job, now))
    yield from answers_owed(state)
    return spent


def next_ready(state: Pool, now: int) -> Job | None:
    waits = state.waits
    if waits.again:
        return state.deferred[next(iter(waits.again))]
    if waits.nodeless and state.shapes and now >= state.settled_at:
        return state.deferred[next(iter(waits.nodeless))]
    return next_in_line(state) or next_to_make(state)


def next_to_make(state: Pool) -> Job | None:
    if not state.folded:
        return None
    array = state.arrays[next(iter(state.folded))]
    return Job(
        f"{array.job_id}.{array.next_index}",
        array.tenant,
        array.spec,
        need_of(array.spec),
        array.digest,
        array.submitted_at,
        array.next_index,
        array.cause,
        array.traceparent,
    )


def readmission(state: Pool, job_id: str) -> Decision:
    job, backoff = state.admitted[job_id], state.backoffs[job_id]
    event = JobReadmitted(
        job_id=job_id, tenant=job.tenant, attempt=backoff.attempt + 1, avoid_nodes=job.avoid_nodes
    )
    return Decision(event, backoff.cause, backoff.traceparent)


def due(state: Pool) -> int | None:
    """When to look again, ms; 0 is at once."""
    waits = state.waits
    if state.owed or state.cancelling:
        return 0
    if waits.again or state.folded or next_in_line(state) is not None:
        return 0
    times = [state.settled_at] if waits.nodeless and state.shapes else []
    times += [at for at, _ in state.alarms[:1]]
    return min(times, default=None)
