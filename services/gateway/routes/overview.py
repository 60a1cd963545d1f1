"""Jobs and arrays, one row for each submission."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from berth_client import answers
from services.gateway.core.failures import add_advice
from services.gateway.reads import job_queries
from services.gateway.reads.database import Row
from services.gateway.reads.paging import NamePart, TimeCursor, TimeToken, page_of
from services.gateway.requests.archived_rows import with_left_before
from services.gateway.requests.commands import json_response
from services.gateway.responses.openapi import read_route
from services.gateway.routes.jobs import list_filter
from shared.contracts.base import JobId, Name

router = APIRouter(prefix="/v1/submissions", tags=["jobs"])
COUNTS = ("jobs", "pending", "running", "succeeded", "failed", "cancelled")
OF_ARRAYS = ("job_id", "pool", "tenant", "name", "user_id", "priority_class", "workers", "gpus")
"""Columns that the jobs of an array share, beside its time."""
Limit = Annotated[int, Query(ge=1, le=200, description="rows per page")]


@router.get("", **read_route(answers.Page[answers.Submission], 404, 422))
async def list_submissions(
    request: Request,
    tenant: Annotated[Name | None, Query(description="only this tenant; for operators")] = None,
    name: Annotated[NamePart, Query(description="prefix of the name")] = None,
    pool: Annotated[Name | None, Query(description="only this pool")] = None,
    id: Annotated[JobId | None, Query(description="prefix of the id")] = None,
    after: TimeToken = None,
    limit: Limit = 50,
) -> Response:
    """List jobs and arrays, newest first; an array is one row, with the common stem of its ids.

    `array` has its number of `jobs` so far and how many of them are pending, running, succeeded,
    failed and cancelled (or rejected); it is null for a job of its own, which has the fields that
    `/v1/jobs` has.
    """
    gateway, bearer, visible = await list_filter(request, tenant, pool)
    cursor = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, job_queries.SUBMISSIONS, visible, name, pool, id, cursor.at, cursor.key, limit
    )
    page = page_of(rows, limit, "submitted_at", "job_id")
    page["items"] = [submission_row(row, gateway.shown_ms()) for row in rows]
    return json_response(await with_left_before(gateway, bearer, page, "job_admission"))


def submission_row(row: Row, as_of: int) -> Row:
    """Return the row of a job, or of the array of which it is the first job."""
    counts = {name: row.pop(name) for name in COUNTS}
    if not row.pop("is_array"):
        add_advice(row)
        return {**row, "as_of": as_of, "array": None}
    shared = {name: row[name] for name in (*OF_ARRAYS, "submitted_at")}
    stem = str(row["job_id"]).removesuffix(".0")
    return {**shared, "job_id": stem, "as_of": as_of, "array": counts}
