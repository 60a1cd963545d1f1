"""Tenants, keys, quotas, pools, endpoints, answers to commands, dead letters and the audit."""

from __future__ import annotations

import secrets
from typing import Annotated, Literal, TypeVar, cast

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from services.gateway import queries
from services.gateway.authorization import authorize
from services.gateway.body import json_body
from services.gateway.commands import (
    CommandReceipt,
    KeyReceipt,
    accepted_response,
    json_response,
    lane_of_pool,
    send_access_command,
    send_command,
)
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.strict import Body, parse_body
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
    RetryInput,
    RevokeKey,
    Role,
    SkipInput,
)
from shared.contracts.base import Model, Name, Text
from shared.contracts.jobs import SetQuota
from shared.contracts.keys import format_key, hash_secret
from shared.contracts.registry import Bearer

router = APIRouter(prefix="/v1", tags=["access"])
Tenant = Annotated[Name, Path(description="name of the tenant")]
M = TypeVar("M", bound=Model)
WRITES = problem_responses(400, 413, 415, 422)


class CreateKeyRequest(Model):
    """A new key; the gateway generates the secret."""

    role: Role = Field("submitter", description="role of the bearer")
    key_id: Name | None = Field(None, description="public part of the key; generated if not given")


class SetQuotaRequest(Model):
    """GPU quota of a tenant in one pool."""

    pool: Name | None = Field(None, description="pool; the tenant's default if not given")
    guaranteed_gpus: float = Field(
        ge=0, le=1e6, description="GPUs admitted regardless of other tenants"
    )
    borrow_gpus: float | None = Field(
        None, ge=0, le=1e6, description="borrowable GPUs; unlimited if not given"
    )
    spot_gpus: float | None = Field(
        None, ge=0, le=1e6, description="spot GPUs; unlimited if not given"
    )


class SkipInputRequest(Model):
    """Why an input is never decided."""

    reason: Text = Field(min_length=1, description="free text for the audit")


InputIdPath = Annotated[str, Path(description="id of the input: ledger/partition/seq/index")]


@router.get("/tenants", responses=problem_responses(422))
async def list_tenants(request: Request, after: PageToken = None, limit: Limit = 100) -> Response:
    """List tenants with their use in GPU-milliseconds and the outcomes of their jobs."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    rows = await gateway.database.rows(bearer, queries.TENANTS, bearer.tenant, after, limit)
    return json_response(page_of(rows, limit, "tenant"))


@router.get("/tenants/{tenant}", responses=problem_responses(404, 422))
async def show_tenant(request: Request, tenant: Tenant) -> Response:
    """Show a tenant with its quota in each pool."""
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
    """Register a tenant."""
    bearer, command = await _admin_request(request, RegisterTenant)
    receipt = await send_access_command(request, bearer, command, command.tenant)
    return accepted_response(receipt)


@router.delete(
    "/tenants/{tenant}", status_code=202, response_model=CommandReceipt, responses=WRITES
)
async def retire_tenant(request: Request, tenant: Tenant) -> Response:
    """Retire a tenant: it can submit nothing more; running jobs continue."""
    bearer = await authorize(request, "admin")
    receipt = await send_access_command(request, bearer, RetireTenant(tenant=tenant), tenant)
    return accepted_response(receipt)


@router.post(
    "/tenants/{tenant}/keys",
    status_code=202,
    response_model=KeyReceipt,
    responses=WRITES,
    openapi_extra=request_body(CreateKeyRequest, required=False),
)
async def create_tenant_key(request: Request, tenant: Tenant) -> Response:
    """Create a key of the tenant. The response shows it once."""
    return await _create_key(request, tenant)


@router.post(
    "/keys",
    status_code=202,
    response_model=KeyReceipt,
    responses=WRITES,
    openapi_extra=request_body(CreateKeyRequest),
)
async def create_key(request: Request) -> Response:
    """Create a key of an operator or an admin. The response shows it once."""
    return await _create_key(request, None)


@router.delete("/keys/{key_id}", status_code=202, response_model=CommandReceipt, responses=WRITES)
async def revoke_key(
    request: Request, key_id: Annotated[Name, Path(description="public part of the key")]
) -> Response:
    """Revoke a key; it is rejected within seconds."""
    bearer = await authorize(request, "admin")
    receipt = await send_access_command(request, bearer, RevokeKey(key_id=key_id), key_id)
    return accepted_response(receipt)


@router.post(
    "/tenants/{tenant}/quota",
    status_code=202,
    response_model=CommandReceipt,
    responses=WRITES,
    openapi_extra=request_body(SetQuotaRequest),
)
async def set_quota(request: Request, tenant: Tenant) -> Response:
    """Set the quota of a tenant in one pool."""
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
    """List pools with their lanes and settings."""
    return await _all(request, queries.POOLS)


@router.post(
    "/pools",
    status_code=202,
    response_model=CommandReceipt,
    responses=WRITES,
    openapi_extra=request_body(ConfigurePool),
)
async def configure_pool(request: Request) -> Response:
    """Create or change a pool; its lane is assigned once and never changes."""
    bearer, command = await _admin_request(request, ConfigurePool)
    receipt = await send_access_command(request, bearer, command, command.pool)
    return accepted_response(receipt)


@router.get("/endpoints", responses=problem_responses())
async def list_endpoints(request: Request) -> Response:
    """List LLM endpoints with their lanes."""
    return await _all(request, queries.ENDPOINTS)


@router.post(
    "/endpoints",
    status_code=202,
    response_model=CommandReceipt,
    responses=WRITES,
    openapi_extra=request_body(ConfigureEndpoint),
)
async def configure_endpoint(request: Request) -> Response:
    """Create or change an LLM endpoint."""
    bearer, command = await _admin_request(request, ConfigureEndpoint)
    receipt = await send_access_command(request, bearer, command, command.endpoint)
    return accepted_response(receipt)


@router.get("/commands/{command_id}", responses=problem_responses(404, 422))
async def show_answer(
    request: Request, command_id: Annotated[str, Path(pattern=r"^[A-Za-z0-9._:/-]{1,64}$")]
) -> Response:
    """Show the answer to a command; 404 until its owner has decided and this gateway applies the
    decision: a client that reads that a tenant was retired finds it so at this gateway."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    row = await gateway.database.row(bearer, queries.COMMAND, bearer.tenant, command_id)
    if row is None or not _is_applied(gateway, row):
        raise not_found("answer")
    return json_response(row)


@router.get("/dead", responses=problem_responses(422))
async def list_dead_letters(
    request: Request, after: TimeToken = None, limit: Limit = 100
) -> Response:
    """List inputs that could not be decoded, with position and reason; the topic `dead` has their
    bytes."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    cursor = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.DEAD, bearer.tenant, cursor.at, cursor.key, limit
    )
    return json_response(page_of(rows, limit, "at", "dead_id"))


@router.post(
    "/dead/{input_id:path}/retry",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(422),
)
async def retry_input(request: Request, input_id: InputIdPath) -> Response:
    """Give an input that was set aside after an internal error to its service again, once."""
    bearer = await authorize(request, "operator")
    return await _settle(request, bearer, parse_body(RetryInput, {"input_id": input_id}))


@router.post(
    "/dead/{input_id:path}/skip",
    status_code=202,
    response_model=CommandReceipt,
    responses=WRITES,
    openapi_extra=request_body(SkipInputRequest),
)
async def skip_input(request: Request, input_id: InputIdPath) -> Response:
    """Close an input that was set aside: it is never decided."""
    bearer = await authorize(request, "operator")
    body = parse_body(SkipInputRequest, await json_body(request))
    fields: Body = {"input_id": input_id, "reason": body.reason}
    return await _settle(request, bearer, parse_body(SkipInput, fields))


async def _settle(request: Request, bearer: Bearer, command: RetryInput | SkipInput) -> Response:
    receipt = await send_access_command(request, bearer, command, command.input_id)
    return accepted_response(receipt)


@router.get("/audit", responses=problem_responses(422))
async def list_audit(
    request: Request,
    principal: Annotated[NamePart, Query(description="only entries of this principal")] = None,
    action: Annotated[
        NamePart, Query(description="only this action, such as key.create.v1")
    ] = None,
    outcome: Annotated[
        Literal["accepted", "refused", "requested"] | None, Query(description="only this outcome")
    ] = None,
    after: PageToken = None,
    limit: Limit = 100,
) -> Response:
    """List actions and denied requests by principal, newest first; for operators."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "operator")
    cursor = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.AUDIT, principal, action, outcome, cursor.at, cursor.key, limit
    )
    return json_response(page_of(rows, limit, "at", "entry_id"))


async def _admin_request(request: Request, kind: type[M]) -> tuple[Bearer, M]:
    """Return the admin that sends the request, and its body."""
    bearer = await authorize(request, "admin")
    return bearer, parse_body(kind, await json_body(request))


async def _create_key(request: Request, tenant: str | None) -> Response:
    bearer, body = await _admin_request(request, CreateKeyRequest)
    is_global = body.role in ("operator", "admin")
    if is_global != (tenant is None):
        rule = "tenant keys are viewer or submitter; operator and admin keys have no tenant"
        raise InvalidBody([FieldError(field="role", value=body.role, rule=rule)])
    key_id = body.key_id or f"k{secrets.token_hex(8)}"
    secret = secrets.token_urlsafe(32)
    command = CreateKey(key_id=key_id, sha256=hash_secret(secret), role=body.role, tenant=tenant)
    receipt = await send_access_command(request, bearer, command, key_id)
    return accepted_response(
        KeyReceipt(**receipt.model_dump(), key_id=key_id, key=format_key(key_id, secret))
    )


def _is_applied(gateway: Gateway, answer: Row) -> bool:
    return answer["ledger"] != ACCESS.topic or gateway.access.has_folded_answer(
        str(answer["command_id"]), cast("int", answer["at"])
    )


async def _all(request: Request, sql: str) -> Response:
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    return json_response({"items": await gateway.database.rows(bearer, sql), "next": None})
