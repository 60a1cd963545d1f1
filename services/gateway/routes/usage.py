"""Usage by jobs: GPU time, waits, outcomes and cost by tenant, user, pool, day or month."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from berth_client import answers
from services.gateway.reads.paging import Limit, OffsetToken, page_from
from services.gateway.reads.usage_queries import By, job_usage_by
from services.gateway.requests.authorization import authorize
from services.gateway.requests.commands import json_response
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import not_found
from services.gateway.wiring import gateway_of
from shared.contracts.base import Name, Text

LAST_MS = 10**15

router = APIRouter(prefix="/v1", tags=["access"])

Moment = Annotated[int, Query(ge=0, le=LAST_MS)]


@router.get("/usage", **read_route(answers.Page[answers.JobUse], 404, 422))
async def list_usage(
    request: Request,
    by: Annotated[By, Query(description="what is summed together")] = "tenant",
    since: Annotated[
        Moment, Query(description="only days that begin at or after it, ms since 1970")
    ] = 0,
    until: Annotated[Moment, Query(description="only days that begin before it")] = LAST_MS,
    tenant: Annotated[Name | None, Query(description="only this tenant")] = None,
    pool: Annotated[Name | None, Query(description="only this pool")] = None,
    user: Annotated[Text | None, Query(description="only this user")] = None,
    after: OffsetToken = None,
    limit: Limit = 100,
) -> Response:
    """Sum what jobs used, by days in UTC; each day has its part of an attempt.

    A start counts, with the wait before it (`waited_ms`), when the job is placed; GPU time and
    `cost` count when the attempt has ended, at the `gpu_hour_price` that its pool had then.
    """
    bearer = await authorize(request, "viewer")
    if bearer.tenant and tenant not in (None, bearer.tenant):
        raise not_found("tenant")
    values = (bearer.tenant or tenant, since, until, pool, user, limit + 1, int(after or 0))
    rows = await gateway_of(request).database.rows(bearer, job_usage_by(by), *values)
    return json_response(page_from(rows, after, limit))
