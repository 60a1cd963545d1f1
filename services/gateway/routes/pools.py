"""Pools."""

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
from services.gateway.requests.updates import pool_command
from services.gateway.responses.openapi import read_route
from services.gateway.wiring import gateway_of
from shared.contracts.base import Name
from shared.contracts.pools import ConfigurePool, PoolConfigured
from shared.contracts.registry import AccessView
from shared.contracts.releases import FinishUpgrade
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdatePool

router = APIRouter(prefix="/v1", tags=["access"])


@router.get("/pools", **read_route(answers.Page[answers.Pool]))
async def list_pools(request: Request) -> Response:
    """List pools with their lanes, settings and their version; `open`: the bearer may submit.

    `release` is the one to which an upgrade is finished; 0: none that says so.

    Tenants do not see the setting `tenants`: it names others.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    rows = await gateway.database.rows(bearer, queries.POOLS)
    return json_response(
        {"items": [pool_row(row, bearer.tenant, gateway.access.view) for row in rows], "next": None}
    )


@router.post("/pools", **command_route(ConfigurePool, 409))
async def configure_pool(request: Request) -> Response:
    """Create or replace a pool: what is not named gets its default, `PATCH` keeps it.

    Its lane is assigned once and never changes.

    Until an upgrade is finished, settings that earlier releases lack stay as they are: another
    value than the default of one is refused with `upgrade_not_finished`.

    With `if_version` the response comes after the decision: 409 if the settings have another
    version by then.
    """
    bearer, command = await admin_request(request, ConfigurePool)
    return accepted_response(await send_configuration(request, bearer, command, command.pool))


@router.patch("/pools/{pool}", **command_route(UpdatePool, 409))
async def update_pool(
    request: Request, pool: Annotated[Name, Path(description="name of the pool")]
) -> Response:
    """Change the named settings of a pool and keep the others; null is the default.

    Of two changes at once both hold, where they name different settings. `if_version` is a
    condition as for `POST`.
    """
    bearer, update = await update_request(request, UpdatePool, pool=pool)
    command = pool_command(gateway_of(request).access.view, update)
    return accepted_response(await send_configuration(request, bearer, command, pool))


@router.post("/upgrade/finish", **command_route(None))
async def finish_upgrade(request: Request) -> Response:
    """Finish the upgrade to this release: pools get its defaults, and the way back is closed."""
    bearer = await authorize(request, "admin")
    command = FinishUpgrade()
    return accepted_response(await send_access_command(request, bearer, command, "upgrade"))


def pool_row(row: Row, tenant: str | None, view: AccessView) -> Row:
    """Return the row as the tenant sees it; an operator, without a tenant, sees all of it."""
    settings = dict(cast("Row", row["settings"]))
    pool = PoolConfigured.model_validate(settings)
    for name in ("release", "reason"):
        settings.pop(name, None)
    if tenant is not None:
        settings.pop("tenants", None)
    is_open = tenant is None or view.may_use(tenant, pool)
    about = {"version": version_of(pool), "reason": pool.reason, "release": pool.release}
    return {**row, "settings": settings, **about, "open": is_open}
