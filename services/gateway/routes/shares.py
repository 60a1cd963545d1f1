"""Fair shares: what each tenant may expect of a pool, beside what it has and used."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from berth_client import answers
from services.gateway.core.shares import PoolUse, shares_of
from services.gateway.reads.database import Row
from services.gateway.reads.share_queries import HALF_LIVES, POOL_GPUS, SHARES
from services.gateway.requests.authorization import authorize
from services.gateway.requests.commands import json_response
from services.gateway.responses.openapi import read_route
from services.gateway.wiring import gateway_of
from shared.bus.clock import now_ms
from shared.contracts.base import Name
from shared.contracts.registry import AccessView

router = APIRouter(prefix="/v1", tags=["access"])


@router.get("/shares", **read_route(answers.Page[answers.FairShare], 422))
async def list_shares(
    request: Request, pool: Annotated[Name | None, Query(description="only this pool")] = None
) -> Response:
    """List what each tenant may expect of each pool by its weight, beside what it holds and used.

    `share` is by weight among the active tenants that may use the pool, `entitled_gpus` that share
    of the GPUs of its nodes. `decayed_gpu_hours` are those of running attempts and of ended ones,
    which lose half of their worth with each `half_life_s` of the pool. `use_share` and the `factor`
    of Slurm, 2 to the power of -`use_share`/`share`, need the use of all tenants: a tenant's key
    gets null for them, and its own row alone.
    """
    gateway, bearer = gateway_of(request), await authorize(request, "viewer")
    view, database = gateway.access.view, gateway.database
    gpus = {str(row["pool"]): row for row in await database.rows(bearer, POOL_GPUS, pool)}
    rows: dict[str, dict[str, Row]] = {name: {} for name in gpus}
    for row in await database.rows(bearer, SHARES, bearer.tenant, pool, now_ms(), HALF_LIVES):
        rows.setdefault(str(row["pool"]), {})[str(row["tenant"])] = row
    items = [
        row
        for name in gpus
        for row in _rows_of(view, name, gpus[name], rows[name], is_complete=bearer.tenant is None)
    ]
    return json_response({"items": items, "next": None})


def _rows_of(
    view: AccessView, name: str, about: Row, own: dict[str, Row], *, is_complete: bool
) -> list[Row]:
    """Return the rows of one pool; `own` are those of the query, by tenant."""
    configured = view.pool(name)
    if configured is None:
        return []
    weights = {
        tenant: view.tenants[tenant].weight
        for tenant in view.active_tenants
        if view.may_use(tenant, configured)
    }
    use = {
        tenant: PoolUse(float(str(row["used_gpus"])), float(str(row["decayed_gpu_hours"])))
        for tenant, row in own.items()
    }
    shares = shares_of(weights, use, float(str(about["gpus"])), is_complete=is_complete)
    return [
        {**own[tenant], "weight": weights[tenant], **share._asdict()}
        for tenant, share in shares.items()
        if tenant in own
    ]
