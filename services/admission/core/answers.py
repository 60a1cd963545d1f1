"""The answer to a command: exactly one, from its owner."""

from __future__ import annotations

from shared.bus.decider import Decision, Input
from shared.contracts.base import Command
from shared.contracts.jobs import CommandAccepted, CommandRefused


def accepted(
    item: Input, wish: Command, of: str, tenant: str = "", duplicate: bool = False
) -> Decision:
    return item.leads_to(
        CommandAccepted(
            command_id=item.id,
            command_type=wish.TYPE,
            of=of,
            tenant=tenant or item.tenant,
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
            reason=reason,
            detail=detail,
        )
    )
