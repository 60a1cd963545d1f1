"""Changes of what a tenant keeps encrypted: their pace, their versions, and access's decision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi import Request

from berth_client.answers import CommandReceipt
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.requests.authorization import charge
from services.gateway.requests.commands import decide_by_access
from services.gateway.responses.problem import ApiError
from services.gateway.wiring import Gateway
from shared.contracts.registry import Bearer
from shared.contracts.secrets import DeleteSecret, RewrapSecret, StoreSecret
from shared.contracts.updates import UpdateWebhook
from shared.contracts.webhooks import CreateWebhook, DeleteWebhook, SendTestEvent

TRIES = 5
"""Attempts to store a secret while other gateways store secrets of the tenant."""
Change = (
    StoreSecret
    | RewrapSecret
    | DeleteSecret
    | CreateWebhook
    | UpdateWebhook
    | DeleteWebhook
    | SendTestEvent
)
Sealed = TypeVar("Sealed", StoreSecret, CreateWebhook)


def charge_change(gateway: Gateway, bearer: Bearer) -> None:
    """Take a change from the tenant's bucket; operators have none. Raises ApiError 429."""
    charge(gateway, bearer, gateway.secret_changes, "changes of secrets")


async def decided(request: Request, bearer: Bearer, command: Change) -> CommandReceipt:
    """Return the receipt once access has accepted the change. Raises ApiError."""
    subject = f"{command.tenant}/{command.name}"
    return await decide_by_access(
        request, bearer.principal, command, subject, tenant=bearer.tenant or ""
    )


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
                return command, await decided(request, bearer, command)
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
