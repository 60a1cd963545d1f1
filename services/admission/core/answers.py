"""The answer to a command: exactly one, from its owner."""

from __future__ import annotations

from services.admission.core.ended import Outcome
from shared.contracts.base import Command
from shared.contracts.construct import construct
from shared.contracts.jobs import CancelJob, CommandAccepted, CommandRefused
from shared.ledger.decider import Decision, Input


def accepted(
    item: Input, wish: Command, of: str, tenant: str = "", duplicate: bool = False
) -> Decision:
    return item.leads_to(
        construct(
            CommandAccepted,
            command_id=item.id,
            command_type=wish.TYPE,
            of=of,
            tenant=tenant or item.tenant,
            principal=item.principal or None,
            duplicate=duplicate,
        )
    )


def refused(
    item: Input, wish: Command, of: str, reason: str, detail: str, tenant: str = ""
) -> Decision:
    return item.leads_to(
        CommandRefused(
            command_id=item.id,
            command_type=wish.TYPE,
            of=of,
            tenant=tenant or item.tenant,
            principal=item.principal or None,
            reason=reason,
            detail=detail,
        )
    )


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
