"""The answer to a cancel, once its job or array has ended."""

from __future__ import annotations

from services.admission.core.ended import Outcome
from shared.contracts.construct import construct
from shared.contracts.jobs import CancelJob, CommandAccepted, CommandRefused


def end_told(
    command_id: str, job_id: str, outcome: Outcome, tenant: str
) -> CommandAccepted | CommandRefused:
    """Who asked for the end of a job or array hears of it; a finish that came first wins."""
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
        detail=f"job_id: {job_id!r}: has {outcome}",
    )
