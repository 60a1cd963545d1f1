"""The answer to a cancel, once its job or array has ended."""

from __future__ import annotations

from services.admission.core.ended_jobs import Outcome
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.construct import construct
from shared.contracts.job_commands import CancelJob


def answer_cancel(
    command_id: str, job_id: str, outcome: Outcome, tenant: str
) -> CommandAccepted | CommandRefused:
    """Accept the cancel, or refuse it if the job or array ended before it could be cancelled."""
    if outcome == "cancelled":
        return construct(
            CommandAccepted,
            command_id=command_id,
            command_type=CancelJob.TYPE,
            of=job_id,
            tenant=tenant,
        )
    return CommandRefused(
        command_id=command_id,
        command_type=CancelJob.TYPE,
        of=job_id,
        tenant=tenant,
        reason="already_finished",
        detail=f"job_id: {job_id!r}: already {outcome}",
    )
