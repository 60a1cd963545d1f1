"""A cancel: admission ends what it has not let in; the rest placement ends, and is asked to.

The jobs of a cancelled array are asked in turn, as many as a record holds (`settle.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from services.admission.core.answers import end_told
from services.admission.core.dependencies import standing
from services.admission.core.state import Pool
from shared.contracts.jobs import ArrayCancelRequested, CancelJob, CancelRequested
from shared.contracts.placement import JobCancelled
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input

ANSWERS_MOST = 200
"""In one call: a record has its bounds, the next one goes on."""


def cancel(state: Pool, item: Input, wish: CancelJob) -> Iterator[Decision]:
    job_id = wish.job_id
    found = standing(state, job_id)
    if found is None or wish.tenant not in (None, found.tenant):
        yield refuse_command(item, job_id, "unknown_job", f"job_id: {job_id!r}: no such job")
        return
    match found.phase:
        case "deferred":
            yield accept_command(item, job_id, tenant=found.tenant)
            yield item.leads_to(
                JobCancelled(job_id=job_id, tenant=found.tenant, reason=wish.reason)
            )
        case "admitted":
            yield item.leads_to(
                CancelRequested(
                    job_id=job_id,
                    tenant=found.tenant,
                    command_id=item.id,
                    principal=item.principal or None,
                    reason=wish.reason,
                )
            )
        case "open":
            yield item.leads_to(
                ArrayCancelRequested(
                    job_id=job_id,
                    tenant=found.tenant,
                    command_id=item.id,
                    principal=item.principal or None,
                    reason=wish.reason,
                )
            )
        case outcome:
            detail = f"job_id: {job_id!r}: has {outcome}"
            yield refuse_command(item, job_id, "already_finished", detail, tenant=found.tenant)


def next_of_array(state: Pool) -> tuple[Decision, int]:
    """The next job of a cancelled array, asked to end, and about how many bytes that takes.

    There is one: an array is in `cancelling` for as long as one of its jobs is to be asked.
    """
    array = state.arrays[next(iter(state.cancelling))]
    job_id = f"{array.job_id}.{array.told}"
    command_id, traceparent = array.cancels[0]
    event: CancelRequested | JobCancelled
    if job_id in state.deferred:
        event = JobCancelled(job_id=job_id, tenant=array.tenant, reason=array.why)
    else:
        event = CancelRequested(
            job_id=job_id,
            tenant=array.tenant,
            command_id=command_id,
            reason=array.why,
            of_array=True,
        )
    return Decision(event, command_id, traceparent), len(array.why.encode())


def answers_owed(state: Pool) -> Iterator[Decision]:
    """Of arrays that are over; one whose jobs all ended by themselves was finished already."""
    for command_id, owed in list(state.owed.items())[:ANSWERS_MOST]:
        event = end_told(command_id, owed.array_id, owed.outcome, owed.tenant)
        yield Decision(event, command_id, owed.traceparent)
