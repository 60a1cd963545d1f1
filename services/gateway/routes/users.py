"""Users of tenants with their bounds and use, and their addresses, which no route returns."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field, field_validator

from berth_client import answers
from services.gateway.core.field_errors import FieldError
from services.gateway.core.key_bounds import NotPermitted, user_of
from services.gateway.core.strict import parse_body
from services.gateway.reads import user_queries
from services.gateway.reads.database import Row
from services.gateway.reads.paging import Limit, PageToken, page_of_entries
from services.gateway.requests.authorization import authorize, update_request
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import (
    accepted_response,
    command_route,
    decide_by_access,
    json_response,
)
from services.gateway.requests.filters import check_tenant
from services.gateway.requests.secret_changes import (
    charge_change,
    decided,
    require_owner,
    store_sealed,
)
from services.gateway.requests.updates import require_finished
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import not_found
from services.gateway.routes.submissions import TENANT_REQUIRED, OfTenant, owner_of, sender_for
from services.gateway.wiring import gateway_of
from shared.contracts.base import Model, Name
from shared.contracts.bounds import UserBounds
from shared.contracts.registry import AccessView, Bearer
from shared.contracts.secrets import MAIL, DeleteSecret, StoreSecret
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdateUser
from shared.contracts.users import DeleteUser, RegisterUser

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


class RegisterUserRequest(UserBounds):
    """A new user of the tenant, and its bounds within those of the tenant."""

    user: Name = Field(description="person or robot: as keys name it, or the subject of its tokens")


@router.get("", **read_route(answers.Page[answers.User], 422))
async def list_users(
    request: Request, tenant: OfTenant = None, after: PageToken = None, limit: Limit = 1000
) -> Response:
    """List users with bounds, keys and use: those that are registered, and those that keys name.

    Use is that of jobs whose `user` is theirs, as placement and admission have them.
    """
    gateway, bearer = gateway_of(request), await authorize(request, "viewer")
    shown, view = owner_of(bearer, tenant), gateway.access.view
    check_tenant(gateway, shown)
    rows = await gateway.database.rows(bearer, user_queries.USE, shown)
    use = {(str(row["tenant"]), str(row["user"])): row for row in rows}
    keys = keys_by_user(view, shown)
    registered = {
        (of, user)
        for of in view.users.by_tenant
        if shown in (None, of)
        for user in view.users.of(of)
    }
    users = {f"{of}/{user}": (of, user) for of, user in registered | keys.keys()}

    def row_of(named: tuple[str, str]) -> Row:
        existing = view.users.get(*named)
        return {
            "id": "/".join(named),
            "tenant": named[0],
            "user": named[1],
            "registered": existing is not None,
            "bounds": view.users.bounds_of(*named).model_dump(),
            "version": version_of(existing),
            "keys": keys.get(named, []),
            "use": {name: use.get(named, {}).get(name, 0) for name in user_queries.FIGURES},
        }

    return json_response(page_of_entries(users, row_of, after, limit, "id"))


def keys_by_user(view: AccessView, tenant: str | None) -> dict[tuple[str, str], list[str]]:
    """Return the ids of valid keys by the tenant and user that they name."""
    keys: dict[tuple[str, str], list[str]] = {}
    for key in view.keys.values():
        is_valid = key.key_id not in view.revoked
        if is_valid and key.tenant and key.user and tenant in (None, key.tenant):
            keys.setdefault((key.tenant, key.user), []).append(key.key_id)
    return keys


@router.post("", **command_route(RegisterUserRequest, 409))
async def register_user(request: Request, tenant: OfTenant = None) -> Response:
    """Register a user of a tenant: from now on its name is that of its keys and tokens alone.

    Keys that name it are its keys; `POST /v1/tenants/{tenant}/keys` makes further ones.
    """
    bearer = await authorize(request, "admin")
    owner = require_owner(owner_of(bearer, tenant), TENANT_REQUIRED)
    body = parse_body(RegisterUserRequest, await json_body(request))
    command = RegisterUser(tenant=owner, **body.model_dump())
    return await _decided(request, bearer, command)


@router.patch("/{user}", **command_route(UpdateUser, 404, 409))
async def update_user(request: Request, user: User, tenant: OfTenant = None) -> Response:
    """Change the named bounds of a user and keep the others; null is the default: the tenant's.

    Jobs that wait or run stay.
    """
    bearer = await authorize(request, "admin")
    owner = require_owner(owner_of(bearer, tenant), TENANT_REQUIRED)
    _, command = await update_request(request, UpdateUser, tenant=owner, user=user)
    return await _decided(request, bearer, command)


@router.delete("/{user}", **command_route(None, 400, 404, 409, 413, 415, 422))
async def delete_user(request: Request, user: User, tenant: OfTenant = None) -> Response:
    """Delete a user, its keys and its address, in one decision; its jobs go on.

    The subject of a token stays one: who is to submit nothing more has `max_open_jobs` 0.
    """
    bearer = await authorize(request, "admin")
    owner = require_owner(owner_of(bearer, tenant), TENANT_REQUIRED)
    return await _decided(request, bearer, DeleteUser(tenant=owner, user=user))


async def _decided(
    request: Request, bearer: Bearer, command: RegisterUser | UpdateUser | DeleteUser
) -> Response:
    """Return the receipt once access has accepted the command. Raises ApiError."""
    require_finished(gateway_of(request).access.view, "a user", "bounds of keys hold alone")
    subject = f"{command.tenant}/{command.user}"
    return accepted_response(await decide_by_access(request, bearer.principal, command, subject))


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
