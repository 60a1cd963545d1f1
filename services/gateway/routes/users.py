"""Addresses of users, to which mails about their jobs go. No route returns one."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field, field_validator

from berth_client import answers
from services.gateway.core.field_errors import FieldError
from services.gateway.core.key_bounds import NotPermitted, user_of
from services.gateway.core.strict import parse_body
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import accepted_response, command_route
from services.gateway.requests.secret_changes import (
    charge_change,
    decided,
    require_owner,
    store_sealed,
)
from services.gateway.requests.updates import require_finished
from services.gateway.responses.problem import not_found
from services.gateway.routes.submissions import TENANT_REQUIRED, OfTenant, owner_of, sender_for
from services.gateway.wiring import gateway_of
from shared.contracts.base import Model, Name
from shared.contracts.registry import Bearer
from shared.contracts.secrets import MAIL, DeleteSecret, StoreSecret

ATOM = r"[A-Za-z0-9!#$%&'*+/^_`{|}~-]+"
"""Without `=` and `?`, which make an encoded word (RFC 2047) in the header of a mail."""
LOCAL_PART = rf"{ATOM}(\.{ATOM})*"
LOCAL_CHARS = 64
LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"

router = APIRouter(prefix="/v1/users", tags=["access"])

User = Annotated[Name, Path(description="the user")]


class MailAddressRequest(Model):
    """The address of a user."""

    address: str = Field(
        max_length=254,
        pattern=rf"^{LOCAL_PART}@{LABEL}(\.{LABEL})*$",
        description="a mail address; private",
    )

    @field_validator("address")
    @classmethod
    def _local_part_fits(cls, address: str) -> str:
        if address.index("@") > LOCAL_CHARS:
            raise ValueError(f"at most {LOCAL_CHARS} characters before the @")
        return address


@router.put("/{user}/mail", **command_route(MailAddressRequest, 409, receipt=answers.SecretReceipt))
async def set_address(request: Request, user: User, tenant: OfTenant = None) -> Response:
    """Set the address of a user; users set their own, operators that of every user.

    It is kept encrypted, as a secret of the tenant, and no route returns it.
    """
    gateway, bearer = gateway_of(request), await authorize(request, "submitter")
    owner = sender_for(gateway.access, bearer, owner_of(bearer, tenant)).tenant
    body = parse_body(MailAddressRequest, await json_body(request))
    check_own(bearer, user)
    require_finished(gateway.access.view, "an address", "no mail is sent")
    charge_change(gateway, bearer)
    name = MAIL + user

    def sealed() -> Awaitable[StoreSecret]:
        view = gateway.access.view
        return gateway.sealing.store(view, owner, name, body.address, bearer.principal)

    command, receipt = await store_sealed(request, gateway, bearer, owner, sealed)
    return accepted_response(
        answers.SecretReceipt(**receipt, tenant=owner, name=name, version=command.version)
    )


@router.delete("/{user}/mail", **command_route(None, 400, 404, 409, 413, 415, 422))
async def delete_address(request: Request, user: User, tenant: OfTenant = None) -> Response:
    """Delete the address of a user: no mail goes to it any more."""
    gateway, bearer = gateway_of(request), await authorize(request, "submitter")
    owner = require_owner(owner_of(bearer, tenant), TENANT_REQUIRED)
    charge_change(gateway, bearer)
    name = MAIL + user
    if gateway.access.view.secrets.get(owner, name) is None:
        await gateway.access.catch_up()
    if gateway.access.view.secrets.get(owner, name) is None:
        raise not_found("address")
    check_own(bearer, user)
    command = DeleteSecret(tenant=owner, name=name)
    return accepted_response(await decided(request, bearer, command))


def check_own(bearer: Bearer, user: str) -> None:
    """Raise NotPermitted for the address of another user."""
    if bearer.tenant is not None and user_of(bearer) != user:
        rule = f"must be the user of {bearer.principal}, or an operator sets the address"
        raise NotPermitted(FieldError(field="user", value=user, rule=rule))
