"""Tenants, keys, quotas, pools and endpoints; the answers to commands; dead letters."""

from __future__ import annotations

import secrets
from typing import Annotated, Literal, TypeVar, cast

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from services.gateway import queries
from services.gateway.authorization import authorize
from services.gateway.body import json_body
from services.gateway.commands import (
    ACCESS_COMMANDS,
    CommandReceipt,
    KeyReceipt,
    accepted_response,
    json_response,
    lane_of_pool,
    send_command,
)
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.strict import parse_body
from services.gateway.database import Row
from services.gateway.openapi import problem_responses, request_body
from services.gateway.paging import Limit, NamePart, PageToken, TimeCursor, TimeToken, page_of
from services.gateway.problem import not_found
from services.gateway.wiring import Gateway, gateway_of
from shared.bus.inbox import ACCESS
from shared.contracts.access import (
    ConfigureEndpoint,
    ConfigurePool,
    CreateKey,
    RegisterTenant,
    RetireTenant,
    RevokeKey,
    Role,
)
from shared.contracts.base import Command, Model, Name
from shared.contracts.jobs import SetQuota
from shared.contracts.keys import format_key, hash_secret

router = APIRouter(prefix="/v1", tags=["access"])
Tenant = Annotated[Name, Path(description="the tenant")]
C = TypeVar("C", bound=Command)
WRITES = problem_responses(400, 413, 415, 422)


class CreateKeyRequest(Model):
    """A new key; the gateway makes the secret."""

    role: Role = Field("submitter", description="what its bearer may do")
    key_id: Name | None = Field(None, description="its public part; absent: made up")


class SetQuotaRequest(Model):
    """A tenant's shares of one pool."""

    pool: Name | None = Field(None, description="absent: the tenant's default")
    guaranteed_gpus: float = Field(ge=0, le=1e6, description="admitted whatever others use")
    borrow_gpus: float | None = Field(
        None, ge=0, le=1e6, description="above it, while others leave theirs; absent: no bound"
    )
    spot_gpus: float | None = Field(None, ge=0, le=1e6, description="admitted spot GPUs")


@router.get("/tenants", responses=problem_responses(422))
async def list_tenants(request: Request, after: PageToken = None, limit: Limit = 100) -> Response:
    """Tenants with what they used, in GPU-milliseconds, and how their jobs ended."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    rows = await gateway.database.rows(bearer, queries.TENANTS, bearer.tenant, after, limit)
    return json_response(page_of(rows, limit, "tenant"))


@router.get("/tenants/{tenant}", responses=problem_responses(404, 422))
async def show_tenant(request: Request, tenant: Tenant) -> Response:
    """One tenant, with its quota in each pool."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    if bearer.tenant not in (None, tenant):
        raise not_found("tenant")
    rows = await gateway.database.rows(bearer, queries.TENANTS, tenant, None, 1)
    if not rows:
        raise not_found("tenant")
    return json_response(
        {**rows[0], "quota": await gateway.database.rows(bearer, queries.QUOTAS, tenant)}
    )


@router.post(
    "/tenants",
    status_code=202,
    response_model=CommandReceipt,
    responses=WRITES,
    openapi_extra=request_body(RegisterTenant),
)
async def register_tenant(request: Request) -> Response:
    """Let a tenant in."""
    gateway, command = await _admin(request, RegisterTenant)
    return accepted_response(await _access(request, gateway, command, command.tenant))


@router.delete(
    "/tenants/{tenant}", status_code=202, response_model=CommandReceipt, responses=WRITES
)
async def retire_tenant(request: Request, tenant: Tenant) -> Response:
    """Take no more of its submissions; what runs goes on."""
    gateway = gateway_of(request)
    return accepted_response(await _access(request, gateway, RetireTenant(tenant=tenant), tenant))


@router.post(
    "/tenants/{tenant}/keys",
    status_code=202,
    response_model=KeyReceipt,
    responses=WRITES,
    openapi_extra=request_body(CreateKeyRequest, required=False),
)
async def create_tenant_key(request: Request, tenant: Tenant) -> Response:
    """A key of this tenant. It is shown in this answer and never again."""
    return await _create_key(request, tenant)


@router.post(
    "/keys",
    status_code=202,
    response_model=KeyReceipt,
    responses=WRITES,
    openapi_extra=request_body(CreateKeyRequest),
)
async def create_key(request: Request) -> Response:
    """A key of an operator or an admin. It is shown in this answer and never again."""
    return await _create_key(request, None)


@router.delete("/keys/{key_id}", status_code=202, response_model=CommandReceipt, responses=WRITES)
async def revoke_key(
    request: Request, key_id: Annotated[Name, Path(description="the key's public part")]
) -> Response:
    """The key opens nothing any more, within seconds."""
    gateway = gateway_of(request)
    return accepted_response(await _access(request, gateway, RevokeKey(key_id=key_id), key_id))


@router.post(
    "/tenants/{tenant}/quota",
    status_code=202,
    response_model=CommandReceipt,
    responses=WRITES,
    openapi_extra=request_body(SetQuotaRequest),
)
async def set_quota(request: Request, tenant: Tenant) -> Response:
    """Set a tenant's shares of one pool."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "operator")
    body = parse_body(SetQuotaRequest, await json_body(request))
    pool = body.pool or gateway.access.sender(tenant).default_pool
    command = SetQuota(
        tenant=tenant,
        guaranteed_gpus=body.guaranteed_gpus,
        borrow_gpus=body.borrow_gpus,
        spot_gpus=body.spot_gpus,
    )
    return accepted_response(
        await send_command(
            request,
            gateway,
            bearer,
            command,
            lane=lane_of_pool(gateway, pool),
            subject=tenant,
            span="quota",
            pool=pool,
        )
    )


@router.get("/pools", responses=problem_responses())
async def list_pools(request: Request) -> Response:
    """Pools with their lanes and settings."""
    return await _all(request, queries.POOLS)


@router.post(
    "/pools",
    status_code=202,
    response_model=CommandReceipt,
    responses=WRITES,
    openapi_extra=request_body(ConfigurePool),
)
async def configure_pool(request: Request) -> Response:
    """Make a pool, or change it; its lane is given once and for ever."""
    gateway, command = await _admin(request, ConfigurePool)
    return accepted_response(await _access(request, gateway, command, command.pool))


@router.get("/endpoints", responses=problem_responses())
async def list_endpoints(request: Request) -> Response:
    """LLM endpoints with their lanes."""
    return await _all(request, queries.ENDPOINTS)


@router.post(
    "/endpoints",
    status_code=202,
    response_model=CommandReceipt,
    responses=WRITES,
    openapi_extra=request_body(ConfigureEndpoint),
)
async def configure_endpoint(request: Request) -> Response:
    """Make an LLM endpoint, or change it."""
    gateway, command = await _admin(request, ConfigureEndpoint)
    return accepted_response(await _access(request, gateway, command, command.endpoint))


@router.get("/commands/{command_id}", responses=problem_responses(404, 422))
async def answer(
    request: Request, command_id: Annotated[str, Path(pattern=r"^[A-Za-z0-9._:/-]{1,64}$")]
) -> Response:
    """The answer of the command's owner; 404 while there is none, or while this gateway has not
    heard it: whoever reads that a tenant was retired, or a key made, finds it so here."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    row = await gateway.database.row(bearer, queries.COMMAND, bearer.tenant, command_id)
    if row is None or not _holds(gateway, row):
        raise not_found("answer, or not yet")
    return json_response(row)


@router.get("/dead", responses=problem_responses(422))
async def dead(request: Request, after: TimeToken = None, limit: Limit = 100) -> Response:
    """Input that nobody could read: where it lies and why; its bytes are in the topic `dead`."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    place = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.DEAD, bearer.tenant, place.at, place.key, limit
    )
    return json_response(page_of(rows, limit, "at", "dead_id"))


@router.get("/audit", responses=problem_responses(422))
async def audit(
    request: Request,
    principal: Annotated[NamePart, Query(description="by this one alone")] = None,
    action: Annotated[NamePart, Query(description="such as key.create.v1")] = None,
    outcome: Annotated[
        Literal["accepted", "refused", "requested"] | None, Query(description="how it went")
    ] = None,
    after: PageToken = None,
    limit: Limit = 100,
) -> Response:
    """Who did what, and who was turned away at the door, the youngest first; for operators."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "operator")
    place = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.AUDIT, principal, action, outcome, place.at, place.key, limit
    )
    return json_response(page_of(rows, limit, "at", "entry_id"))


async def _admin(request: Request, kind: type[C]) -> tuple[Gateway, C]:
    """The body is the command itself."""
    gateway = gateway_of(request)
    await authorize(request, "admin")
    return gateway, parse_body(kind, await json_body(request))


async def _access(
    request: Request, gateway: Gateway, command: Command, subject: str
) -> CommandReceipt:
    bearer = await authorize(request, "admin")
    return await send_command(
        request, gateway, bearer, command, topic=ACCESS_COMMANDS, subject=subject, span="access"
    )


async def _create_key(request: Request, tenant: str | None) -> Response:
    gateway = gateway_of(request)
    await authorize(request, "admin")
    body = parse_body(CreateKeyRequest, await json_body(request))
    for_all = body.role in ("operator", "admin")
    if for_all != (tenant is None):
        rule = "a tenant's key is a viewer's or submitter's; the others belong to no tenant"
        raise InvalidBody([FieldError(field="role", value=body.role, rule=rule)])
    key_id = body.key_id or f"k{secrets.token_hex(8)}"
    secret = secrets.token_urlsafe(32)
    command = CreateKey(key_id=key_id, sha256=hash_secret(secret), role=body.role, tenant=tenant)
    ticket = await _access(request, gateway, command, key_id)
    return accepted_response(
        KeyReceipt(**ticket.model_dump(), key_id=key_id, key=format_key(key_id, secret))
    )


def _holds(gateway: Gateway, answer: Row) -> bool:
    return answer["ledger"] != ACCESS.topic or gateway.access.has_folded_answer(
        str(answer["command_id"]), cast("int", answer["at"])
    )


async def _all(request: Request, sql: str) -> Response:
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    return json_response({"items": await gateway.database.rows(bearer, sql), "next": None})
