"""Dispatches the commands that configure pools, endpoints, tenants and keys."""

from __future__ import annotations

from services.access.core.endpoints import configure_endpoint, delete_endpoint
from services.access.core.keys import create_key, revoke_key
from services.access.core.outcomes import Denial, Grant, Outcome
from services.access.core.pools import configure_pool
from services.access.core.tenants import register_tenant, retire_tenant
from services.access.core.upgrade import finish_upgrade
from shared.contracts.access import (
    AttemptsRefused,
    CreateKey,
    NoteAttempts,
    RegisterTenant,
    RetireTenant,
    RevokeKey,
)
from shared.contracts.base import Command
from shared.contracts.endpoints import ConfigureEndpoint, DeleteEndpoint
from shared.contracts.pools import ConfigurePool
from shared.contracts.registry import AccessView
from shared.contracts.releases import FinishUpgrade


def decide_configuration(view: AccessView, lanes: int, command: Command) -> Outcome:
    """Return the outcome; a command that access does not know is denied."""
    match command:
        case ConfigurePool():
            return configure_pool(view, lanes, command)
        case FinishUpgrade():
            events = tuple(finish_upgrade(view))
            return Grant("upgrade", events[0] if events else None, events[1:])
        case ConfigureEndpoint():
            return configure_endpoint(view, lanes, command)
        case DeleteEndpoint():
            return delete_endpoint(view, command)
        case RegisterTenant():
            return register_tenant(view, command)
        case RetireTenant():
            return retire_tenant(view, command)
        case CreateKey():
            return create_key(view, command)
        case RevokeKey():
            return revoke_key(view, command)
        case NoteAttempts():
            event = AttemptsRefused(gateway=command.gateway, attempts=command.attempts)
            return Grant(command.gateway, event)
        case _:
            return Denial("", "unknown_command", f"command: {command.TYPE}: not supported")
