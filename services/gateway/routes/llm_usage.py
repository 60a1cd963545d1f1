"""Use of LLM endpoints, its cost, what was rejected, and what is left of budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast

from fastapi import APIRouter, Query, Request, Response

from berth_client import answers
from services.gateway.reads import queries
from services.gateway.reads.database import Row
from services.gateway.reads.llm_queries import (
    LLM_FAIRNESS,
    LLM_REJECTIONS,
    By,
    held_of_budget,
    usage_by,
    use_of_budget,
)
from services.gateway.reads.paging import Limit
from services.gateway.requests.authorization import authorize
from services.gateway.requests.commands import json_response
from services.gateway.responses.openapi import read_route
from services.gateway.routes.endpoints import endpoint_row
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.endpoints import ModelName, TokenBudget
from shared.contracts.registry import Bearer

MILLION = 1e6

router = APIRouter(prefix="/v1/llm", tags=["llm"])

Since = Annotated[
    int, Query(ge=0, lt=10**15, description="only hours that begin at or after it, ms since 1970")
]


@router.get("/usage", **read_route(answers.Page[answers.LlmUse], 404, 422))
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


@router.get("/rejections", **read_route(answers.Page[answers.LlmRejections], 404, 422))
async def list_rejections(request: Request, since: Since = 0, limit: Limit = 100) -> Response:
    """Count rejected requests by tenant, endpoint and reason, the most frequent first."""
    bearer = await authorize(request, "viewer")
    rows = await gateway_of(request).database.rows(
        bearer, LLM_REJECTIONS, bearer.tenant, since, limit
    )
    return json_response({"items": rows, "next": None})


@router.get("/fairness", **read_route(answers.Page[answers.FairnessGap], 404, 422))
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


@router.get("/limits", **read_route(answers.Page[answers.BudgetUse], 404))
async def list_limits(request: Request) -> Response:
    """List the budgets of endpoints: what their holders have used, and what open requests hold.

    A request that waits or runs holds the price of its longest answer, so that `left` is what a
    new one may use. A budget counts the requests that ended after it was set, at `since` (ms since
    1970; 0: before that was recorded), as the endpoint does. One that is not used yet has no
    holder. What budgets without an end count is kept for 90 days here, for ever by the endpoint.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    items: list[Row] = []
    for row in await gateway.database.rows(bearer, queries.ENDPOINTS, None):
        shown = endpoint_row(row, bearer.tenant)
        settings, begun = cast("Row", shown["settings"]), cast("Row", shown["budgets_since"])
        for budget in cast("list[Row]", settings["budgets"]) if shown["open"] else []:
            since = begun.get(TokenBudget.model_validate(budget).account, 0)
            items += await _holders(gateway, bearer, settings, budget, cast("int", since))
    return json_response({"items": items, "next": None})


async def _holders(
    gateway: Gateway, bearer: Bearer, settings: Row, budget: Row, since: int
) -> list[Row]:
    endpoint = str(settings["endpoint"])
    values: list[object] = [bearer.tenant, endpoint, since]
    if budget["memory"] != "forever":
        values += [gateway.shown_ms(), 1000 * cast("float", budget["period_s"])]
    rows = await gateway.database.rows(bearer, use_of_budget(budget), *values)
    prices = _prices(settings) if budget["unit"] == "money" else ()
    held = await gateway.database.rows(
        bearer, held_of_budget(budget), bearer.tenant, endpoint, *prices
    )
    uses = _with_held(rows, held) or [{"tenant": None, "holder": None, "used": 0.0, "held": 0.0}]
    return [{**budget_row(endpoint, budget, use), "since": since} for use in uses]


def _prices(settings: Row) -> tuple[float, float, float]:
    """Return the money per request, prompt token and output token."""
    request, prompt, output = (
        cast("float", settings.get(f"{name}_price") or 0.0)
        for name in ("request", "prompt", "output")
    )
    return request, prompt / MILLION, output / MILLION


def _with_held(used: Sequence[Row], held: Sequence[Row]) -> list[Row]:
    """Return a row per holder that has used some of a budget, or holds some of it."""
    uses: dict[tuple[object, object], Row] = {}
    for row in (*used, *held):
        key = row["tenant"], row["holder"]
        uses[key] = {"used": 0.0, "held": 0.0, **uses.get(key, {}), **row}
    return list(uses.values())


def budget_row(endpoint: str, budget: Row, use: Row) -> Row:
    """Return one holder of a budget with what is left of it, never below 0."""
    kind, limit = budget["holder"], cast("float", budget["limit"])
    taken = cast("float", use["used"]) + cast("float", use["held"])
    left = max(0.0, limit - taken)
    return {"endpoint": endpoint, **budget, "kind": kind, **use, "left": left}
