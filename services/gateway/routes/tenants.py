"""Tenants, their keys and quotas, and the keys of operators and admins."""

from __future__ import annotations

import secrets
from operator import itemgetter
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from berth_client import answers
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.strict import parse_body
from services.gateway.reads import job_queries, queries
from services.gateway.reads.database import Row
from services.gateway.reads.paging import Limit, PageToken, page_of
from services.gateway.requests.authorization import admin_request, authorize, update_request
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import (
    accepted_response,
    command_route,
    json_response,
    lane_of_pool,
    send_access_command,
    send_command,
    send_configuration,
)
from services.gateway.requests.updates import require_finished, tenant_command
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import not_found
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.access import (
    CreateKey,
    KeyBounds,
    RegisterTenant,
    RetireTenant,
    RevokeKey,
    Role,
)
from shared.contracts.admission import QuotaChanged
from shared.contracts.base import Name
from shared.contracts.bounds import TenantBounds
from shared.contracts.endpoints import ModelName
from shared.contracts.job_commands import QuotaBounds, SetQuota
from shared.contracts.keys import format_key, hash_secret
from shared.contracts.registry import Bearer
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdateQuota, UpdateTenant

router = APIRouter(prefix="/v1", tags=["access"])

Tenant = Annotated[Name, Path(description="name of the tenant")]


class CreateKeyRequest(KeyBounds):
    """A new key; the gateway generates the secret."""

    role: Role = Field("submitter", description="role of the bearer")
    key_id: Name | None = Field(None, description="public part of the key; generated if not given")
    models: tuple[ModelName, ...] = Field(
        (), max_length=64, description="models that it may call; empty: those of its tenant"
    )


class SetQuotaRequest(QuotaBounds):
    """GPU quota of a tenant in one pool."""

    pool: Name | None = Field(None, description="pool; the tenant's default if not given")


class UpdateQuotaRequest(UpdateQuota):
    """Bounds of a tenant in one pool: absent is unchanged, null is not limited."""

    pool: Name | None = Field(None, description="pool; the tenant's default if not given")


@router.get("/tenants", **read_route(answers.Page[answers.Tenant], 422))
async def list_tenants(request: Request, after: PageToken = None, limit: Limit = 100) -> Response:
    """List tenants with their use in GPU-milliseconds and the outcomes of their jobs.

    `number` is the tenant's for ever: its uid on nodes is `uid_first` of the agent plus it.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    rows = await gateway.database.rows(bearer, queries.TENANTS, bearer.tenant, after, limit)
    shown = [tenant_row(gateway, row) for row in rows]
    return json_response(page_of(shown, limit, "tenant"))


@router.get("/tenants/{tenant}", **read_route(answers.TenantDetail, 404, 422))
async def show_tenant(request: Request, tenant: Tenant) -> Response:
    """Show a tenant with its quota in each pool, its bounds, and what it uses of them.

    `use` has its open jobs and their GPUs by pool, and its open streams at this gateway.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    if bearer.tenant not in (None, tenant):
        raise not_found("tenant")
    rows = await gateway.database.rows(bearer, queries.TENANTS, tenant, None, 1)
    if not rows:
        raise not_found("tenant")
    quota = await gateway.database.rows(bearer, queries.QUOTAS, tenant)
    open_jobs = await gateway.database.rows(bearer, job_queries.OPEN_JOBS, tenant)
    shown = {
        **tenant_row(gateway, rows[0]),
        "quota": [{**row, "version": quota_version(row)} for row in quota],
        "version": version_of(gateway.access.view.tenants.get(tenant)),
        "bounds": shown_bounds(gateway, gateway.access.view.bounds_of(tenant)),
        "use": {"open_jobs": open_jobs, "streams": gateway.streams.of_tenant(tenant)},
    }
    return json_response(shown)


@router.post("/tenants", **command_route(RegisterTenant, 409))
async def register_tenant(request: Request) -> Response:
    """Register a tenant, or change what is named of one that exists.

    With `if_version` the response comes after the decision: 409 if the tenant has another version
    by then.
    """
    bearer, command = await admin_request(request, RegisterTenant)
    change = tenant_command(gateway_of(request).access.view, command)
    return accepted_response(await send_configuration(request, bearer, change, command.tenant))


@router.patch("/tenants/{tenant}", **command_route(UpdateTenant, 409))
async def update_tenant(request: Request, tenant: Tenant) -> Response:
    """Change the named settings of a tenant and keep the others; null is the default.

    `if_version` is a condition as for `POST`.
    """
    bearer, command = await update_request(request, UpdateTenant, tenant=tenant)
    require_finished(gateway_of(request).access.view)
    return accepted_response(await send_configuration(request, bearer, command, tenant))


@router.delete("/tenants/{tenant}", **command_route(None, 400, 413, 415, 422))
async def retire_tenant(request: Request, tenant: Tenant) -> Response:
    """Retire a tenant: it can submit nothing more and has no secrets; running jobs continue.

    Its keys read and cancel until its name is registered again; then they are revoked.
    """
    bearer = await authorize(request, "admin")
    receipt = await send_access_command(request, bearer, RetireTenant(tenant=tenant), tenant)
    return accepted_response(receipt)


@router.post(
    "/tenants/{tenant}/keys",
    **command_route(CreateKeyRequest, 409, required=False, receipt=answers.KeyReceipt),
)
async def create_tenant_key(request: Request, tenant: Tenant) -> Response:
    """Create a key of the tenant. The response shows it once."""
    return await _create_key(request, tenant)


@router.get("/tenants/{tenant}/keys", **read_route(answers.Page[answers.Key], 404, 422))
async def list_tenant_keys(request: Request, tenant: Tenant) -> Response:
    """List the keys of a tenant, as `GET /v1/keys` with this filter does."""
    return await list_keys(request, tenant)


@router.get("/keys", **read_route(answers.Page[answers.Key], 404, 422))
async def list_keys(
    request: Request, tenant: Annotated[Name | None, Query(description="only this tenant")] = None
) -> Response:
    """List the keys that are not revoked: to operators all, to others those of their tenant."""
    bearer, view = await authorize(request, "viewer"), gateway_of(request).access.view
    if tenant is not None and (bearer.tenant not in (None, tenant) or tenant not in view.tenants):
        raise not_found("tenant")
    tenant = bearer.tenant or tenant
    shown = [
        key.model_dump(include={"key_id", "tenant", "role", "models", *KeyBounds.model_fields})
        for key in view.keys.values()
        if tenant in (None, key.tenant) and key.key_id not in view.revoked
    ]
    return json_response({"items": sorted(shown, key=itemgetter("key_id")), "next": None})


@router.post("/keys", **command_route(CreateKeyRequest, 409, receipt=answers.KeyReceipt))
async def create_key(request: Request) -> Response:
    """Create a key of an operator or an admin. The response shows it once."""
    return await _create_key(request, None)


@router.delete("/keys/{key_id}", **command_route(None, 400, 413, 415, 422))
async def revoke_key(
    request: Request, key_id: Annotated[Name, Path(description="public part of the key")]
) -> Response:
    """Revoke a key; it is rejected within seconds."""
    bearer = await authorize(request, "admin")
    receipt = await send_access_command(request, bearer, RevokeKey(key_id=key_id), key_id)
    return accepted_response(receipt)


@router.post("/tenants/{tenant}/quota", **command_route(SetQuotaRequest))
async def set_quota(request: Request, tenant: Tenant) -> Response:
    """Set the whole quota of a tenant in one pool: what is not named is not limited.

    `if_version`: the command is refused if the quota has another version when it is decided.
    """
    bearer = await authorize(request, "operator")
    body = parse_body(SetQuotaRequest, await json_body(request))
    command = SetQuota(tenant=tenant, **body.model_dump(exclude={"pool"}))
    return await _send_quota(request, bearer, command, body.pool)


@router.patch("/tenants/{tenant}/quota", **command_route(UpdateQuotaRequest, 409))
async def update_quota(request: Request, tenant: Tenant) -> Response:
    """Change the named bounds of a tenant in one pool and keep the others; null: not limited."""
    bearer, body = await update_request(request, UpdateQuotaRequest, "operator", tenant=tenant)
    require_finished(gateway_of(request).access.view)
    command = UpdateQuota.model_validate(body.model_dump(exclude={"pool"}, exclude_unset=True))
    return await _send_quota(request, bearer, command, body.pool)


async def _send_quota(
    request: Request, bearer: Bearer, command: SetQuota | UpdateQuota, named: str | None
) -> Response:
    gateway = gateway_of(request)
    pool = named or gateway.access.sender(command.tenant).default_pool
    return accepted_response(
        await send_command(
            request,
            gateway,
            bearer,
            command,
            lane=lane_of_pool(gateway, pool),
            subject=command.tenant,
            span="quota",
            pool=pool,
        )
    )


def quota_version(row: Row) -> str:
    return version_of(QuotaChanged.model_validate({k: v for k, v in row.items() if k != "pool"}))


def shown_bounds(gateway: Gateway, bounds: TenantBounds) -> Row:
    """Return all bounds, of streams as well."""
    limits = gateway.settings.stream_limits
    streams = {"max_streams": limits.of_tenant, "max_key_streams": limits.of_key}
    return {**bounds.model_dump(), **streams}


def tenant_row(gateway: Gateway, row: Row) -> Row:
    """Return the row with number and LLM weight; null until this gateway has read of the tenant."""
    registered = gateway.access.view.tenants.get(str(row["tenant"]))
    number = registered.number if registered else None
    return {**row, "number": number, "llm_weight": registered.llm_weight if registered else None}


async def _create_key(request: Request, tenant: str | None) -> Response:
    bearer, body = await admin_request(request, CreateKeyRequest)
    is_global = body.role in ("operator", "admin")
    if is_global != (tenant is None):
        rule = "tenant keys are viewer or submitter; operator and admin keys have no tenant"
        raise InvalidBody([FieldError(field="role", value=body.role, rule=rule)])
    if body.model_fields_set & KeyBounds.model_fields.keys():
        # A release before would take the key for one without bounds.
        require_finished(gateway_of(request).access.view, "a bound of a key")
    key_id = body.key_id or f"k{secrets.token_hex(8)}"
    secret = secrets.token_urlsafe(32)
    command = CreateKey(
        key_id=key_id,
        sha256=hash_secret(secret),
        role=body.role,
        tenant=tenant,
        models=body.models,
        **body.model_dump(include=set(KeyBounds.model_fields)),
    )
    receipt = await send_access_command(request, bearer, command, key_id)
    return accepted_response(
        answers.KeyReceipt(**receipt, key_id=key_id, key=format_key(key_id, secret))
    )
