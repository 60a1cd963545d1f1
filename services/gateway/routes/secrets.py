"""Secrets of tenants: set, list, delete, and bring under another key. No route returns a value."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field, field_validator

from berth_client import answers
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.named_secrets import TAKEN
from services.gateway.core.strict import parse_body
from services.gateway.reads.paging import Limit, PageToken, page_of_entries
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import accepted_response, command_route, json_response
from services.gateway.requests.filters import check_tenant
from services.gateway.requests.secret_changes import (
    charge_change,
    decided,
    require_owner,
    store_sealed,
)
from services.gateway.requests.updates import require_finished
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import ApiError, not_found
from services.gateway.routes.submissions import TENANT_REQUIRED, OfTenant, owner_of, sender_for
from services.gateway.wiring import gateway_of
from shared.contracts.base import Model
from shared.contracts.registry import Bearer
from shared.contracts.secrets import (
    MAX_VALUE_BYTES,
    DeleteSecret,
    RewrapSecret,
    SecretName,
    SecretStored,
    StoreSecret,
    is_reserved,
)

LIMIT_BYTES = 8 * MAX_VALUE_BYTES
"""Longest body: JSON writes a control character as six."""

router = APIRouter(prefix="/v1/secrets", tags=["secrets"])

Secret = Annotated[SecretName, Path(description="name of the secret")]


class SetSecretRequest(Model):
    """The value of a secret: text, which jobs get as a variable."""

    value: str = Field(
        min_length=1,
        max_length=MAX_VALUE_BYTES,
        description="the value, at most 32 KiB of UTF-8 without a NUL; private",
    )

    @field_validator("value")
    @classmethod
    def _fits(cls, value: str) -> str:
        if (size := len(value.encode())) > MAX_VALUE_BYTES:
            raise ValueError(f"{size} bytes; at most {MAX_VALUE_BYTES} are allowed")
        return value


@router.post("/rotate", **read_route(answers.Rotation, 422))
async def rotate_secrets(request: Request) -> Response:
    """Bring secrets under the first key of the file of keys, some of them at a time."""
    gateway, bearer = gateway_of(request), await authorize(request, "operator")
    await gateway.access.catch_up()
    rewraps = await gateway.sealing.rewraps(gateway.access.view)
    done = await asyncio.gather(
        *(_rewrapped(request, bearer, command) for command in rewraps.commands)
    )
    return json_response(
        {
            "key_id": rewraps.key_id,
            "rewrapped": sum(done),
            "left": rewraps.left,
            "lost": rewraps.lost,
        }
    )


@router.put("/{name}", **command_route(SetSecretRequest, 409, receipt=answers.SecretReceipt))
async def set_secret(request: Request, name: Secret, tenant: OfTenant = None) -> Response:
    """Set a secret of a tenant: jobs that name it as `secret://NAME` get it when they start.

    The gateway encrypts the value; it is stored when the answer comes. The same value again changes
    nothing.
    """
    gateway, bearer = gateway_of(request), await authorize(request, "submitter")
    owner = sender_for(gateway.access, bearer, owner_of(bearer, tenant)).tenant
    _check_name(name)
    body = parse_body(SetSecretRequest, await json_body(request, LIMIT_BYTES))
    require_finished(gateway.access.view, "a secret", "the files of BERTH_SECRETS count")
    charge_change(gateway, bearer)

    def sealed() -> Awaitable[StoreSecret]:
        view = gateway.access.view
        return gateway.sealing.store(view, owner, name, body.value, bearer.principal)

    command, receipt = await store_sealed(request, gateway, bearer, owner, sealed)
    return accepted_response(
        answers.SecretReceipt(**receipt, tenant=owner, name=name, version=command.version)
    )


@router.get("", **read_route(answers.Page[answers.Secret], 422))
async def list_secrets(
    request: Request, tenant: OfTenant = None, after: PageToken = None, limit: Limit = 1000
) -> Response:
    """List secrets: names, versions, times and who set them; never values."""
    gateway, bearer = gateway_of(request), await authorize(request, "viewer")
    shown = owner_of(bearer, tenant)
    check_tenant(gateway, shown)
    secrets = {
        f"{secret.tenant}/{secret.name}": secret
        for secret in gateway.access.view.secrets
        if shown in (None, secret.tenant) and not is_reserved(secret.name)
    }
    return json_response(page_of_entries(secrets, _row_of, after, limit, "id"))


@router.delete("/{name}", **command_route(None, 400, 404, 409, 413, 415, 422))
async def delete_secret(request: Request, name: Secret, tenant: OfTenant = None) -> Response:
    """Delete a secret: a job that names it fails at its next start, with that reason."""
    gateway, bearer = gateway_of(request), await authorize(request, "submitter")
    _check_name(name)
    owner = require_owner(owner_of(bearer, tenant), TENANT_REQUIRED)
    charge_change(gateway, bearer)
    if gateway.access.view.secrets.get(owner, name) is None:
        await gateway.access.catch_up()
    if gateway.access.view.secrets.get(owner, name) is None:
        raise not_found("secret")
    command = DeleteSecret(tenant=owner, name=name)
    return accepted_response(await decided(request, bearer, command))


async def _rewrapped(request: Request, bearer: Bearer, command: RewrapSecret) -> bool:
    """Have access take the key; False for a secret that was set or deleted meanwhile."""
    try:
        await decided(request, bearer, command)
    except ApiError as error:
        if error.reason not in ("version_conflict", "unknown_secret"):
            raise
        return False
    return True


def _check_name(name: str) -> None:
    """Raise InvalidBody for a name under which Berth itself keeps something."""
    if is_reserved(name):
        raise InvalidBody([FieldError(field="name", value=name, rule=TAKEN)])


def _row_of(secret: SecretStored) -> dict[str, object]:
    return {
        "id": f"{secret.tenant}/{secret.name}",
        "tenant": secret.tenant,
        "name": secret.name,
        "version": secret.version,
        "set_at": secret.set_at,
        "set_by": secret.set_by,
        "key_id": secret.sealed.key.key_id,
    }
