"""The outcome of commands about terminals: only a pool that permits them has any."""

from __future__ import annotations

from services.access.core.outcomes import Denial, Grant, Outcome, deny_tenant
from shared.contracts.registry import AccessView
from shared.contracts.terminals import (
    ADMITTED_MS,
    CloseTerminal,
    OpenTerminal,
    TerminalClosed,
    TerminalOpened,
)

TerminalCommand = OpenTerminal | CloseTerminal


def decide_terminal(view: AccessView, command: TerminalCommand, now: int) -> Outcome:
    match command:
        case OpenTerminal():
            return open_terminal(view, command, now)
        case CloseTerminal():
            return Grant(command.job_id, TerminalClosed(**dict(command)))


def open_terminal(view: AccessView, command: OpenTerminal, now: int) -> Outcome:
    """Open a terminal; the gateway has checked that the sender may cancel the job."""
    of, pool = command.job_id, view.pools.get(command.pool)
    if not view.is_finished:
        detail = "terminals are possible after `berth upgrade finish`"
        return Denial(of, "upgrade_not_finished", detail)
    if command.tenant not in view.tenants:
        return deny_tenant(of, command.tenant)
    if pool is None:
        return Denial(of, "unknown_pool", f"no such pool: {command.pool}")
    if not pool.terminals:
        detail = (
            f"terminals of pool {command.pool}: false; an administrator permits them by"
            f" `berth pools set {command.pool} terminals=true`"
        )
        return Denial(of, "terminals_not_permitted", detail)
    return Grant(of, TerminalOpened(**dict(command), admitted_until=now + ADMITTED_MS))
