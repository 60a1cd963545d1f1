"""Pools."""

from __future__ import annotations

import asyncio
from typing import Annotated, cast

from fastapi import APIRouter, Path, Request, Response

from berth_client import answers
from services.gateway.reads import queries
from services.gateway.reads.database import Row
from services.gateway.reads.read_lag import BEHIND, CURSORS, LEDGERS, check_complete
from services.gateway.requests.authorization import admin_request, authorize, update_request
from services.gateway.requests.commands import (
    accepted_response,
    command_route,
    decide_by_access,
    json_response,
    send_access_command,
    send_configuration,
)
from services.gateway.requests.updates import pool_command
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import ApiError, not_found
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.base import Name
from shared.contracts.pools import ConfigurePool, DeletePool, PoolConfigured
from shared.contracts.registry import AccessView, Bearer
from shared.contracts.releases import FinishUpgrade
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdatePool

RECORDS_S = 3.0
"""Time in which read models may get the last records of a pool that is to be deleted."""
LOOK_S = 0.2

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


@router.delete("/pools/{pool}", **command_route(None, 404, 409, 422, 503))
async def delete_pool(
    request: Request, pool: Annotated[Name, Path(description="name of the pool")]
) -> Response:
    """Delete a pool that nothing uses: no open jobs, nodes, tenants, keys or join tokens.

    The response comes after the decision: 409 `pool_in_use` names what is in the way, and 503
    `reads_behind` comes while the read models lack records of its jobs and nodes. Its ended
    jobs stay readable, and a pool that is added under its name goes on in its lane, with its
    quotas; no other pool gets the lane. A job that is submitted at the same moment may still be
    admitted: it waits, and can be cancelled.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "admin")
    lane = gateway.access.pools().get(pool)
    if lane is None:
        raise not_found("pool")
    await _check_unused(gateway, bearer, pool, lane)
    await _await_records(gateway, bearer, lane)
    # What was read meanwhile may use it.
    await _check_unused(gateway, bearer, pool, lane)
    command = DeletePool(pool=pool)
    return accepted_response(await decide_by_access(request, bearer.principal, command, pool))


async def _check_unused(gateway: Gateway, bearer: Bearer, pool: str, lane: int) -> None:
    """Raise ApiError 409 where the read models have an open job or a living node of the pool."""
    [use] = await gateway.database.rows(bearer, queries.POOL_USE, lane)
    for kind, advice in (("jobs", "`berth cancel"), ("nodes", "`berth drain")):
        if names := cast("list[str]", use[kind]):
            rule = f"has open {kind}, such as {names[0]}; {advice} {names[0]}`"
            raise ApiError(409, "pool_in_use", f"pool: {pool!r}: {rule}")


async def _await_records(gateway: Gateway, bearer: Bearer, lane: int) -> None:
    """Return once the read models have all records of the lane. Raises ApiError 503."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + RECORDS_S
    while True:
        cursors = await gateway.database.rows(bearer, CURSORS, lane, list(LEDGERS))
        try:
            return await check_complete(gateway.open_log(), lane, cursors)
        except ApiError as error:
            if error.reason != BEHIND or loop.time() >= ends_s:
                raise
        await asyncio.sleep(LOOK_S)


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
