"""LLM endpoints: the models that clients name, and the engines behind them."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Path, Request, Response

from berth_client import answers
from services.gateway.reads import queries
from services.gateway.reads.database import Row
from services.gateway.requests.authorization import admin_request, authorize, update_request
from services.gateway.requests.commands import (
    accepted_response,
    command_route,
    json_response,
    send_access_command,
    send_configuration,
)
from services.gateway.requests.updates import endpoint_command
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import not_found
from services.gateway.wiring import gateway_of
from shared.contracts.endpoints import (
    ConfigureEndpoint,
    DeleteEndpoint,
    EndpointConfigured,
    ModelName,
)
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdateEndpoint

SHOWN_TO_TENANTS = ("name", "available", "reason", "since")

router = APIRouter(prefix="/v1/endpoints", tags=["llm"])

EndpointName = Annotated[ModelName, Path(description="name of the endpoint; slashes as they are")]


@router.get("", **read_route(answers.Page[answers.Endpoint]))
async def list_endpoints(request: Request) -> Response:
    """List LLM endpoints with their settings and their version; `open`: the tenant may use it.

    `engines` are the upstreams as they were noted at `noted_at`: whether each gets requests, why
    not, since when, and its load. Loads are noted every 10 s at most, `since` is when it came or
    went. Tenants see neither the addresses and loads of engines nor which other tenants may use
    an endpoint.
    """
    bearer = await authorize(request, "viewer")
    rows = await gateway_of(request).database.rows(bearer, queries.ENDPOINTS, None)
    items = [endpoint_row(row, bearer.tenant) for row in rows]
    return json_response({"items": items, "next": None})


@router.get("/{endpoint:path}", **read_route(answers.Endpoint, 404, 422))
async def show_endpoint(request: Request, endpoint: EndpointName) -> Response:
    """Show an LLM endpoint, as the list does."""
    bearer = await authorize(request, "viewer")
    row = await gateway_of(request).database.row(bearer, queries.ENDPOINTS, endpoint)
    if row is None:
        raise not_found("endpoint")
    return json_response(endpoint_row(row, bearer.tenant))


@router.post("", **command_route(ConfigureEndpoint, 409))
async def configure_endpoint(request: Request) -> Response:
    """Create or replace an LLM endpoint: what is not named gets its default, `PATCH` keeps it.

    With `if_version` the response comes after the decision: 409 if the settings have another
    version by then.
    """
    bearer, command = await admin_request(request, ConfigureEndpoint)
    return accepted_response(await send_configuration(request, bearer, command, command.endpoint))


@router.patch("/{endpoint:path}", **command_route(UpdateEndpoint, 409))
async def update_endpoint(request: Request, endpoint: EndpointName) -> Response:
    """Change the named settings of an LLM endpoint and keep the others; null is the default.

    A list such as `upstreams` is one setting and is replaced: name `if_version` with it.
    """
    bearer, update = await update_request(request, UpdateEndpoint, endpoint=endpoint)
    command = endpoint_command(gateway_of(request).access.view, update)
    return accepted_response(await send_configuration(request, bearer, command, endpoint))


@router.delete("/{endpoint:path}", **command_route(None, 400, 413, 415, 422))
async def delete_endpoint(request: Request, endpoint: EndpointName) -> Response:
    """Delete an LLM endpoint: requests that wait are refused, those that run end."""
    bearer = await authorize(request, "admin")
    command = DeleteEndpoint(endpoint=endpoint)
    return accepted_response(await send_access_command(request, bearer, command, endpoint))


def endpoint_row(row: Row, tenant: str | None) -> Row:
    """Return the row as the tenant sees it; an operator, without a tenant, sees all of it."""
    endpoint = EndpointConfigured.model_validate(row["settings"])
    settings = endpoint.model_dump(mode="json", exclude={"partition"})
    engines = cast("list[Row]", row.get("engines") or [])
    if tenant is not None:
        engines = [{name: engine[name] for name in SHOWN_TO_TENANTS} for engine in engines]
        settings.pop("tenants")
        for upstream in cast("list[Row]", settings["upstreams"]):
            upstream.pop("url")
    is_open = tenant is None or not endpoint.tenants or tenant in endpoint.tenants
    version = version_of(endpoint)
    known = {
        "engines": engines,
        "noted_at": row.get("noted_at") or 0,
        "budgets_since": row.get("budgets_since") or {},
    }
    return {**row, **known, "settings": settings, "version": version, "open": is_open}
