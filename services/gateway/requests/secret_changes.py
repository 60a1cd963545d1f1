"""Changes of what a tenant keeps encrypted: their pace, their versions, and access's decision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic_ns
from typing import TypeVar

from fastapi import Request

from berth_client.answers import CommandReceipt
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.kafka.outbox import OutgoingCommand
from services.gateway.requests.commands import decide_by_access, new_command_id
from services.gateway.responses.problem import ApiError, limited
from services.gateway.sealing import CHANGES
from services.gateway.wiring import Gateway
from shared.contracts.registry import Bearer
from shared.contracts.secrets import DeleteSecret, RewrapSecret, StoreSecret
from shared.contracts.webhooks import CreateWebhook, DeleteWebhook, SendTestEvent
from shared.http.rate import NS

TRIES = 5
"""Attempts to store a secret while other gateways store secrets of the tenant."""
Change = StoreSecret | RewrapSecret | DeleteSecret | CreateWebhook | DeleteWebhook | SendTestEvent
Sealed = TypeVar("Sealed", StoreSecret, CreateWebhook)


def charge_change(gateway: Gateway, bearer: Bearer) -> None:
    """Take a change from the tenant's bucket; operators have none. Raises ApiError 429."""
    if bearer.tenant is None:
        return
    if wait_ns := gateway.secret_changes.take(bearer.tenant, monotonic_ns()):
        gateway.telemetry.metrics.rate_limited.labels(bearer.tenant).inc()
        raise limited(f"changes of secrets of tenant {bearer.tenant}", CHANGES, wait_ns / NS)


async def decided(
    request: Request, gateway: Gateway, bearer: Bearer, command: Change
) -> CommandReceipt:
    """Return the receipt once access has accepted the change. Raises ApiError."""
    outgoing = OutgoingCommand(
        new_command_id(),
        command,
        f"{command.tenant}/{command.name}",
        bearer.tenant or "",
        principal=bearer.principal,
        access_next=gateway.access.next,
    )
    return await decide_by_access(request, gateway, outgoing)


async def store_sealed(
    request: Request,
    gateway: Gateway,
    bearer: Bearer,
    tenant: str,
    make: Callable[[], Awaitable[Sealed]],
) -> tuple[Sealed, CommandReceipt]:
    """Send what `make` seals under the next version, which another gateway may take meanwhile."""
    async with gateway.sealing.lock_of(tenant):
        for tries_left in reversed(range(TRIES)):
            command = await make()
            try:
                return command, await decided(request, gateway, bearer, command)
            except ApiError as error:
                if error.reason != "version_conflict" or not tries_left:
                    raise
            await gateway.access.catch_up()
    raise AssertionError("the last attempt returns or raises")


def require_owner(owner: str | None, rule: str) -> str:
    """Return the tenant of a change. Raises InvalidBody for a key of none that names none."""
    if owner is None:
        raise InvalidBody([FieldError(field="tenant", rule=rule)])
    return owner
