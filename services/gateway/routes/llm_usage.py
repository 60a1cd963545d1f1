"""Use of LLM endpoints, its cost, what was rejected, and what is left of budgets."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from services.gateway import queries
from services.gateway.authorization import authorize
from services.gateway.commands import json_response
from services.gateway.database import Row
from services.gateway.llm_queries import LLM_FAIRNESS, LLM_REJECTIONS, By, usage_by, use_of_budget
from services.gateway.openapi import problem_responses
from services.gateway.paging import Limit
from services.gateway.routes.endpoints import endpoint_row
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.endpoints import ModelName
from shared.contracts.registry import Bearer

router = APIRouter(prefix="/v1/llm", tags=["llm"])

Since = Annotated[
    int, Query(ge=0, lt=10**15, description="only hours that begin at or after it, ms since 1970")
]


@router.get("/usage", responses=problem_responses(404, 422))
async def use_by_group(
    request: Request,
    by: Annotated[By, Query(description="what is summed together")] = "tenant",
    since: Since = 0,
    limit: Limit = 100,
) -> Response:
    """Sum requests, tokens, waits and cost of what ended; hours are kept for 90 days.

    `wasted_tokens` are output of requests that were cancelled, failed or lost.
    """
    bearer = await authorize(request, "viewer")
    sql = usage_by(by)
    rows = await gateway_of(request).database.rows(bearer, sql, bearer.tenant, since, limit)
    return json_response({"items": rows, "next": None})


@router.get("/rejections", responses=problem_responses(404, 422))
async def list_rejections(request: Request, since: Since = 0, limit: Limit = 100) -> Response:
    """Count rejected requests by tenant, endpoint and reason, the most frequent first."""
    bearer = await authorize(request, "viewer")
    rows = await gateway_of(request).database.rows(
        bearer, LLM_REJECTIONS, bearer.tenant, since, limit
    )
    return json_response({"items": rows, "next": None})


@router.get("/fairness", responses=problem_responses(404, 422))
async def list_gaps(
    request: Request,
    endpoint: Annotated[ModelName | None, Query(description="only this endpoint")] = None,
    since: Since = 0,
    limit: Limit = 100,
) -> Response:
    """List gaps of service among tenants that waited through a minute, the newest first.

    Service is prompt tokens plus twice the output tokens, by weight. Minutes are joined to hours
    after 7 days; hours are kept for 90.
    """
    bearer = await authorize(request, "viewer")
    rows = await gateway_of(request).database.rows(bearer, LLM_FAIRNESS, endpoint, since, limit)
    return json_response({"items": rows, "next": None})


@router.get("/limits", responses=problem_responses(404))
async def list_limits(request: Request) -> Response:
    """List the budgets of endpoints with what their holders have used, as far as it has ended.

    Requests that wait or run hold reservations beside it. A budget that is not used yet has no
    holder. What budgets without an end count is kept for 90 days here, for ever by the endpoint.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    items: list[Row] = []
    for row in await gateway.database.rows(bearer, queries.ENDPOINTS):
        shown = endpoint_row(row, bearer.tenant)
        settings = cast("Row", shown["settings"])
        for budget in cast("list[Row]", settings["budgets"]) if shown["open"] else []:
            items += await _holders(gateway, bearer, str(row["endpoint"]), budget)
    return json_response({"items": items, "next": None})


async def _holders(gateway: Gateway, bearer: Bearer, endpoint: str, budget: Row) -> list[Row]:
    values: list[object] = [bearer.tenant, endpoint]
    if budget["memory"] != "forever":
        values += [gateway.shown_ms(), 1000 * cast("float", budget["period_s"])]
    rows = await gateway.database.rows(bearer, use_of_budget(budget), *values)
    return [budget_row(endpoint, budget, row) for row in rows] or [
        budget_row(endpoint, budget, {"tenant": None, "holder": None, "used": 0.0})
    ]


def budget_row(endpoint: str, budget: Row, use: Row) -> Row:
    """Return one holder of a budget with what is left of it, never below 0."""
    kind, limit = budget["holder"], cast("float", budget["limit"])
    left = max(0.0, limit - cast("float", use["used"]))
    return {"endpoint": endpoint, **budget, "kind": kind, **use, "left": left}
