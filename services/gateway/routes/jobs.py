"""Queries of jobs: lists, one job, its decisions and their reasons, its trace."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, cast

from fastapi import APIRouter, Path, Query, Request, Response

from berth_client import answers
from services.gateway.core.failures import add_advice
from services.gateway.core.strict import Body
from services.gateway.reads import job_queries, queries
from services.gateway.reads.paging import Limit, NamePart, TimeCursor, TimeToken, page_of
from services.gateway.reads.queue_starts import interval_of
from services.gateway.requests.archived_rows import gone, with_left_before
from services.gateway.requests.authorization import authorize
from services.gateway.requests.commands import json_response
from services.gateway.requests.current_job import all_stays, current_row
from services.gateway.requests.filters import check_job, check_pool, check_tenant
from services.gateway.requests.other_pools import first_start, other_pools
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import not_found
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.access import Role
from shared.contracts.base import JobId, Name
from shared.contracts.registry import Bearer
from shared.projections.jobs import JobPhase
from shared.projections.retention import folder_of
from shared.telemetry.traced import spans_visible_to

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
Job = Annotated[JobId, Path(description="id of the job")]


@router.get("", **read_route(answers.Page[answers.Job], 404, 422))
async def list_jobs(
    request: Request,
    tenant: Annotated[Name | None, Query(description="only this tenant; for operators")] = None,
    phase: Annotated[JobPhase | None, Query(description="only this phase")] = None,
    name: Annotated[NamePart, Query(description="prefix of the name")] = None,
    pool: Annotated[Name | None, Query(description="only this pool")] = None,
    array: Annotated[
        JobId | None, Query(description="only jobs of the array with this stem")
    ] = None,
    after: TimeToken = None,
    limit: Limit = 100,
) -> Response:
    """List jobs, newest first; `next` is the `after` of the following page.

    What a running job has run is `as_of - started_at` ms more than `ran_ms`.
    """
    gateway, bearer, visible = await list_filter(request, tenant, pool)
    cursor = TimeCursor.read(after)
    is_open = phase in job_queries.OPEN_PHASES
    query = job_queries.JOBS_OPEN if is_open else job_queries.JOBS
    rows = await gateway.database.rows(
        bearer,
        query if array is None else job_queries.JOBS_OF_ARRAY,
        visible,
        phase,
        name,
        pool,
        array,
        cursor.at,
        cursor.key,
        limit,
    )
    if not rows:
        await check_job(gateway, bearer, "array", array)
    for row in rows:
        row["as_of"] = gateway.shown_ms()
        add_advice(row)
    page = page_of(rows, limit, "submitted_at", "job_id")
    return json_response(await with_left_before(gateway, bearer, page, "job_admission"))


async def list_filter(
    request: Request, tenant: str | None, pool: str | None
) -> tuple[Gateway, Bearer, str | None]:
    """Return the tenant of the rows of a list, None for all; check the names that are given."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    visible = tenant_filter(bearer, tenant)
    check_tenant(gateway, visible)
    check_pool(gateway, pool)
    return gateway, bearer, visible


def tenant_filter(bearer: Bearer, tenant: str | None) -> str | None:
    """Return the tenant whose rows are selected; None for all tenants."""
    if tenant is not None and bearer.tenant not in (None, tenant):
        raise not_found("tenant")
    return bearer.tenant or tenant


async def visible_job(
    request: Request, job_id: str, at_least: Role = "viewer"
) -> tuple[Gateway, Bearer, Body]:
    """Return the job's row in the pool where it is, which may have another id than the first.

    Raises ApiError 404 if the bearer may not see it.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, at_least)
    row = await current_row(gateway, bearer, job_id)
    if row is None:
        raise await gone(gateway, bearer, "job", "job_admission")
    return gateway, bearer, row


@router.get("/{job_id}", **read_route(answers.JobDetail, 404))
async def show(request: Request, job_id: Job) -> Response:
    """Show a job with its specification, without command and environment.

    `submitted_by` is the key, token or Kafka user that submitted it: `key:ID`, `oidc:SUBJECT` or
    `kafka:TENANT`. `start` is when a waiting job will start, as in `why`; `as_of` is the time of
    the answer, or the last moment of a recorded simulation.
    """
    gateway, bearer, row = await visible_job(request, job_id)
    job_id = str(row["job_id"])
    row["as_of"] = gateway.shown_ms()
    row["trace_id"] = trace_id(row)
    row["start"] = None
    if row["phase"] == "waiting":
        others = await other_pools(gateway, bearer, row)
        row["start"] = first_start(
            await expected_start(gateway, bearer, job_id), others, gateway.shown_ms()
        )
    add_advice(row)
    return json_response(row)


def trace_id(row: Body) -> str:
    parts = str(row.get("traceparent", "")).split("-")
    return parts[1] if len(parts) > 2 else ""


@router.get("/{job_id}/timeline", **read_route(answers.JobHistory, 404))
async def timeline(request: Request, job_id: Job) -> Response:
    """List all decisions about the job in order.

    `archived` is the folder of the archive with them, where they have left the read models.
    """
    return await _history_response(request, job_id, queries.TIMELINE)


@router.get("/{job_id}/why", **read_route(answers.Why, 404))
async def why(request: Request, job_id: Job) -> Response:
    """Explain why the job waited: each hold reason with its numbers, from `at` to `until`.

    `line` is the queue position of a waiting job in the last order of priority; `start` is when it
    will start: its p10, p50 and p90, and the share of such intervals that held; in the first
    seconds `of` is `queue`: it is that of the tenant's last job before it with as many GPUs. With
    several pools it is that of the `pool` which starts it first; `other_pools` are those that a
    waiting job may go to.
    `placing` explains the placement of a job that no longer waits, and `backend` how its nodes run
    it: `virtual` ones simulate it. `deferral` is the last stop of a running job that was put off:
    `rule` protects it until `until`, when it may be stopped for another job. `as_of` is the time
    of the answer, or the last moment of a recorded simulation. `archived` is the folder of the
    archive with the history of a job that ended so long ago that it has left the read models,
    otherwise null.
    """
    gateway, bearer, row = await visible_job(request, job_id)
    job_id = str(row["job_id"])
    history = await _job_history(gateway, bearer, row, queries.WHY)
    end_stays(cast("list[Body]", history["items"]))
    queue_position = await gateway.database.row(
        bearer, queries.QUEUE_POSITION, bearer.tenant, job_id
    )
    placed = await gateway.database.row(bearer, queries.LAST_PLACEMENT, bearer.tenant, job_id)
    others = await other_pools(gateway, bearer, row)
    return json_response(
        {
            **history,
            "as_of": gateway.shown_ms(),
            "line": queue_position,
            "start": first_start(
                await expected_start(gateway, bearer, job_id), others, gateway.shown_ms()
            ),
            "other_pools": others,
            "placing": placement_terms(placed),
            "deferral": await stop_deferral(gateway, bearer, job_id),
            "backend": row["backend"],
        }
    )


def end_stays(items: list[Body]) -> None:
    """Let the last period in a pool that the job left end where that in the next one begins."""
    for item, following in pairwise(items):
        if item["until"] is None:
            item["until"] = following["at"]


async def stop_deferral(
    gateway: Gateway, bearer: Bearer, job_id: str
) -> answers.StopDeferral | None:
    """Return the last stop of a running job that was put off in this start."""
    row = await gateway.database.row(bearer, queries.STOP_DEFERRAL, bearer.tenant, job_id)
    if row is None or not isinstance(data := row["data"], dict):
        return None
    deferral: answers.StopDeferral = {
        "at": int(str(row["at"])),
        "until": data["until"],
        "rule": data["rule"],
        "victims": data["victims"],
    }
    if bearer.tenant is None:
        deferral["by_job_id"] = data["by_job_id"]
    return deferral


async def expected_start(
    gateway: Gateway, bearer: Bearer, job_id: str
) -> answers.StartInterval | None:
    """Return when a waiting job will start; before its own first estimate that of the queue."""
    for of, query in (("job", queries.START_ESTIMATE), ("queue", queries.QUEUE_ESTIMATE)):
        row = await gateway.database.row(bearer, query, bearer.tenant, job_id)
        if row is not None:
            return start_interval(row, of)
    return None


def start_interval(row: Body, of: str) -> answers.StartInterval | None:
    """Return the interval of an estimate, times in ms; `of`: `job`, or `queue` for another's."""
    if not isinstance(data := row["data"], dict):
        return None
    return interval_of(data, row["at"], of)


def placement_terms(row: Body | None) -> Body | None:
    """Return policy, score, model, solver and terms of a placement; None without one."""
    if row is None or not isinstance(data := row["data"], dict):
        return None
    nodes = {lease["node_id"] for lease in data["allocations"]}
    names = ("policy", "score", "model_sha256", "solver", "waited_ms", "terms")
    return {"at": row["at"], **{name: data.get(name) for name in names}, "nodes": sorted(nodes)}


async def _history_response(request: Request, job_id: str, sql: str) -> Response:
    gateway, bearer, row = await visible_job(request, job_id)
    return json_response(await _job_history(gateway, bearer, row, sql))


async def _job_history(gateway: Gateway, bearer: Bearer, job: Body, sql: str) -> Body:
    """Return the events of the job in all of its pools; tenants see no other job's id in them."""
    job_id = str(job["job_id"])
    ids = [stay["job_id"] for stay in await all_stays(gateway, bearer, job)] or [job_id]
    rows = await gateway.database.rows(bearer, sql, bearer.tenant, ids)
    for data in (row["data"] for row in rows):
        if isinstance(data, dict):
            add_advice(data, job.get("spec"))
            if bearer.tenant is not None:
                hide_others(data)
    archived = None if rows else await _archived(gateway, bearer, job)
    return {"job_id": job_id, "items": rows, "archived": archived}


async def _archived(gateway: Gateway, bearer: Bearer, job: Body) -> str | None:
    """Return the folder of the archive that the job's history has left for; None if it has not."""
    ended_at = int(str(job["ended_at"]))
    if not ended_at or not await gateway.database.row(
        bearer, queries.ARCHIVED, ended_at, job["job_id"]
    ):
        return None
    return folder_of(ended_at)


def hide_others(data: Body) -> None:
    """Remove the ids of jobs that preempt this one, or that it waits for."""
    data.pop("by_job_id", None)
    if isinstance(detail := data.get("detail"), dict):
        for name in ("head", "outlasted_by"):
            detail.pop(name, None)


@router.get("/{job_id}/trace", **read_route(answers.JobTrace, 404))
async def trace(request: Request, job_id: Job) -> Response:
    """List the retained spans of the job's start and of later decisions."""
    gateway, bearer, row = await visible_job(request, job_id)
    job_id = str(row["job_id"])
    spans = [*gateway.ring.trace(trace_id(row)), *gateway.ring.by_job(job_id)]
    unique = list({(span.trace_id, span.span_id): span for span in spans}.values())
    if bearer.tenant is not None:
        unique = spans_visible_to(unique, bearer.tenant, job_id)
    return json_response({"job_id": job_id, "spans": gateway.ring.to_json(unique)})
