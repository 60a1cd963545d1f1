"""Cancels: admission ends a deferred job itself, and requests the end of others from placement.

The cancels of an array's jobs are requested in turn, as many as a record holds (`reconsider.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from services.admission.core.answers import answer_cancel
from services.admission.core.dependencies import find_status
from services.admission.core.state import AdmissionState
from shared.contracts.admission import ArrayCancelRequested, CancelRequested
from shared.contracts.attempts import JobCancelled
from shared.contracts.job_commands import CancelJob
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input

MAX_ANSWERS = 200
"""In one call: a record has its bounds, the next one goes on."""


def cancel_job(state: AdmissionState, item: Input, command: CancelJob) -> Iterator[Decision]:
    job_id = command.job_id
    status = find_status(state, job_id)
    if status is None or command.tenant not in (None, status.tenant):
        yield refuse_command(item, job_id, "unknown_job", f"job_id: {job_id!r}: no such job")
        return
    match status.phase:
        case "deferred":
            yield accept_command(item, job_id, tenant=status.tenant)
            yield item.decision(
                JobCancelled(job_id=job_id, tenant=status.tenant, reason=command.reason)
            )
        case "admitted":
            yield item.decision(cancel_request(item, command, status.tenant))
        case "transferred":
            yield accept_command(item, job_id, tenant=status.tenant)
            yield item.decision(cancel_request(item, command, status.tenant))
        case "open":
            yield item.decision(
                ArrayCancelRequested(
                    job_id=job_id,
                    tenant=status.tenant,
                    command_id=item.id,
                    principal=item.principal or None,
                    reason=command.reason,
                )
            )
        case outcome:
            detail = f"job_id: {job_id!r}: already {outcome}"
            yield refuse_command(item, job_id, "already_finished", detail, tenant=status.tenant)


def cancel_request(item: Input, command: CancelJob, tenant: str) -> CancelRequested:
    """Return the request; that of a job that was transferred follows it to its pool."""
    return CancelRequested(
        job_id=command.job_id,
        tenant=tenant,
        command_id=item.id,
        principal=item.principal or None,
        reason=command.reason,
    )


def cancel_next_array_job(state: AdmissionState) -> tuple[Decision, int]:
    """Return the cancel of the next job of a cancelled array, and the bytes of its reason.

    There is one: an array is in `cancelling` as long as one of its jobs has no requested cancel.
    """
    array = state.arrays[next(iter(state.cancelling))]
    job_id = f"{array.job_id}.{array.cancel_index}"
    command_id, traceparent = array.cancels[0]
    event: CancelRequested | JobCancelled
    if job_id in state.deferred:
        event = JobCancelled(job_id=job_id, tenant=array.tenant, reason=array.cancel_reason)
    else:
        event = CancelRequested(
            job_id=job_id,
            tenant=array.tenant,
            command_id=command_id,
            reason=array.cancel_reason,
            of_array=True,
        )
    return Decision(event, command_id, traceparent), len(array.cancel_reason.encode())


def answer_array_cancels(state: AdmissionState) -> Iterator[Decision]:
    """Yield the pending answers of arrays that have ended, up to `MAX_ANSWERS`."""
    for command_id, answer in list(islice(state.pending_answers.items(), MAX_ANSWERS)):
        event = answer_cancel(command_id, answer.array_id, answer.outcome, answer.tenant)
        yield Decision(event, command_id, answer.traceparent)
