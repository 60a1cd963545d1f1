"""Jobs: submission, cancellation and all queries of a job."""

from __future__ import annotations

from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Request, Response

from services.gateway import queries
from services.gateway.access import AccessDirectory
from services.gateway.authorization import authorize
from services.gateway.body import json_body
from services.gateway.commands import (
    COMMANDS,
    CommandReceipt,
    SubmissionReceipt,
    accepted_response,
    append_command,
    json_response,
    lane_of_pool,
    new_command_id,
    send_command,
)
from services.gateway.core.failures import add_advice
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.strict import Body, parse_body
from services.gateway.core.submission import (
    CancelRequest,
    FlatJobBody,
    JobBody,
    Sender,
    job_ids,
    parse_submission,
    submit_job,
)
from services.gateway.openapi import problem_responses, request_body
from services.gateway.outbox import OutgoingCommand
from services.gateway.paging import Limit, NamePart, TimeCursor, TimeToken, page_of
from services.gateway.problem import ApiError, not_found, unavailable
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.base import JobId, Name
from shared.contracts.jobs import CancelJob
from shared.contracts.registry import Bearer
from shared.telemetry.traced import spans_visible_to

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
Job = Annotated[JobId, Path(description="id of the job")]


@router.post(
    "",
    status_code=202,
    response_model=SubmissionReceipt,
    responses=problem_responses(400, 413, 415, 422),
    openapi_extra=request_body(FlatJobBody, JobBody),
)
async def submit(request: Request) -> Response:
    """Submit a job, or an array. A repeat with the same `Idempotency-Key` (or field
    `idempotency_key`) and the same body has no effect and returns the same job id."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "submitter")
    raw = await json_body(request)
    body = parse_submission(raw)
    sender = sender_for(gateway.access, bearer, body.tenant)
    command = submit_job(body, sender, gateway.access.pools(), _idempotency_key(request, body))
    lane = gateway.access.pools()[command.pool]
    outgoing = OutgoingCommand(
        new_command_id(),
        command,
        command.job_id,
        sender.tenant,
        command.pool,
        principal=bearer.principal,
        access_next=gateway.access.next,
    )
    ticket = await append_command(
        request,
        gateway,
        "submit",
        COMMANDS,
        lane,
        outgoing,
        {"job.id": command.job_id, "tenant.id": sender.tenant, "pool.id": command.pool},
    )
    gateway.recent.note(command.job_id, sender.tenant, lane)
    return accepted_response(
        SubmissionReceipt(
            command_id=ticket.command_id,
            trace_id=ticket.trace_id,
            job_id=command.job_id,
            job_ids=job_ids(command),
            idempotency_key=command.idempotency_key,
            pool=command.pool,
        )
    )


def sender_for(access: AccessDirectory, bearer: Bearer, named: str | None) -> Sender:
    """Return the sender: the bearer's own tenant, or for an operator the tenant that is named."""
    tenant = bearer.tenant or named
    if tenant is None:
        raise InvalidBody(
            [FieldError(field="tenant", rule="tenant is required with an operator key")]
        )
    if not access.view.is_active(tenant):
        raise ApiError(403, "unknown_tenant", f"tenant not registered or retired: {tenant}")
    return access.sender(tenant)


def _idempotency_key(request: Request, body: JobBody) -> str:
    """Return the key from header or field; without either every request is a new submission."""
    header = request.headers.get("idempotency-key")
    if header is None:
        return str(uuid4())
    if not 1 <= len(header) <= 128:
        raise InvalidBody(
            [FieldError(field="Idempotency-Key", rule="must have 1 to 128 characters")]
        )
    if body.idempotency_key not in (None, header):
        raise InvalidBody(
            [FieldError(field="idempotency_key", rule="differs from the header Idempotency-Key")]
        )
    return header


@router.get("", responses=problem_responses(404, 422))
async def list_jobs(
    request: Request,
    tenant: Annotated[Name | None, Query(description="only this tenant; for operators")] = None,
    phase: Annotated[
        str | None,
        Query(pattern="^[a-z]{1,20}$", description="only this phase, such as waiting or running"),
    ] = None,
    name: Annotated[NamePart, Query(description="prefix of the name")] = None,
    pool: Annotated[Name | None, Query(description="only this pool")] = None,
    array: Annotated[
        JobId | None, Query(description="only jobs of the array with this stem")
    ] = None,
    after: TimeToken = None,
    limit: Limit = 100,
) -> Response:
    """List jobs, newest first; `next` is the `after` of the following page."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    visible = tenant_filter(bearer, tenant)
    cursor = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.JOBS, visible, phase, name, pool, array, cursor.at, cursor.key, limit
    )
    for row in rows:
        add_advice(row)
    return json_response(page_of(rows, limit, "submitted_at", "job_id"))


def tenant_filter(bearer: Bearer, tenant: str | None) -> str | None:
    """Return the tenant whose rows are selected; None for all tenants."""
    if tenant is not None and bearer.tenant not in (None, tenant):
        raise not_found("tenant")
    return bearer.tenant or tenant


async def visible_job(request: Request, job_id: str) -> tuple[Gateway, Bearer, Body]:
    """Return the job's row; raises ApiError 404 if the bearer may not see it."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    row = await gateway.database.row(bearer, queries.JOB, bearer.tenant, job_id)
    if row is None:
        raise not_found("job")
    return gateway, bearer, row


@router.get("/{job_id}", responses=problem_responses(404))
async def show(request: Request, job_id: Job) -> Response:
    """Show a job with its specification, without command and environment."""
    _, _, row = await visible_job(request, job_id)
    row["trace_id"] = trace_id(row)
    add_advice(row)
    return json_response(row)


def trace_id(row: Body) -> str:
    parts = str(row.get("traceparent", "")).split("-")
    return parts[1] if len(parts) > 2 else ""


@router.get("/{job_id}/timeline", responses=problem_responses(404))
async def timeline(request: Request, job_id: Job) -> Response:
    """List all decisions about the job in order."""
    return await _history_response(request, job_id, queries.TIMELINE)


@router.get("/{job_id}/why", responses=problem_responses(404))
async def why(request: Request, job_id: Job) -> Response:
    """Explain why the job waited: each hold reason with its numbers, from `at` to `until`.

    `line` is the queue position of a waiting job in the last order of priority; `placing` explains
    the placement of a job that no longer waits.
    """
    gateway, bearer, _ = await visible_job(request, job_id)
    history = await _job_history(gateway, bearer, job_id, queries.WHY)
    queue_position = await gateway.database.row(
        bearer, queries.QUEUE_POSITION, bearer.tenant, job_id
    )
    placed = await gateway.database.row(bearer, queries.LAST_PLACEMENT, bearer.tenant, job_id)
    return json_response({**history, "line": queue_position, "placing": placement_terms(placed)})


def placement_terms(row: Body | None) -> Body | None:
    """Return policy, score, model, solver and terms of a placement; None without one."""
    if row is None or not isinstance(data := row["data"], dict):
        return None
    nodes = {lease["node_id"] for lease in data["allocations"]}
    names = ("policy", "score", "model_sha256", "solver", "waited_ms", "terms")
    return {"at": row["at"], **{name: data.get(name) for name in names}, "nodes": sorted(nodes)}


async def _history_response(request: Request, job_id: str, sql: str) -> Response:
    gateway, bearer, _ = await visible_job(request, job_id)
    return json_response(await _job_history(gateway, bearer, job_id, sql))


async def _job_history(gateway: Gateway, bearer: Bearer, job_id: str, sql: str) -> Body:
    """Return the events of the job; tenants do not see for which job it was preempted."""
    rows = await gateway.database.rows(bearer, sql, bearer.tenant, job_id)
    for data in (row["data"] for row in rows):
        if isinstance(data, dict):
            add_advice(data)
            if bearer.tenant is not None:
                data.pop("by_job_id", None)
    return {"job_id": job_id, "items": rows}


@router.get("/{job_id}/trace", responses=problem_responses(404))
async def trace(request: Request, job_id: Job) -> Response:
    """List the retained spans of the job's start and of later decisions."""
    gateway, bearer, row = await visible_job(request, job_id)
    spans = [*gateway.ring.trace(trace_id(row)), *gateway.ring.by_job(job_id)]
    unique = list({(span.trace_id, span.span_id): span for span in spans}.values())
    if bearer.tenant is not None:
        unique = spans_visible_to(unique, bearer.tenant, job_id)
    return json_response({"job_id": job_id, "spans": gateway.ring.to_json(unique)})


@router.delete(
    "/{job_id}",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(404, 422),
)
async def delete(request: Request, job_id: Job) -> Response:
    """Cancel a job, or every job of an array, in any phase."""
    return await cancel(request, job_id)


@router.post(
    "/{job_id}/cancel",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(400, 404, 413, 415, 422),
    openapi_extra=request_body(CancelRequest, required=False),
)
async def cancel(request: Request, job_id: Job) -> Response:
    """Cancel a job, or every job of an array; the command is answered when the job has ended."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "submitter")
    body = parse_body(CancelRequest, await json_body(request))
    lane = await _lane(gateway, bearer, job_id, body.pool)
    command = CancelJob(job_id=job_id, tenant=bearer.tenant, reason=body.reason)
    return accepted_response(
        await send_command(
            request,
            gateway,
            bearer,
            command,
            lane=lane,
            subject=job_id,
            span="cancel",
            pool=body.pool or "",
        )
    )


async def _lane(gateway: Gateway, bearer: Bearer, job_id: str, pool: str | None) -> int:
    """Return the lane of the given pool, else of the job, else of the tenant's default pool."""
    if pool is not None:
        return lane_of_pool(gateway, pool)
    recent_lane = gateway.recent.lane(job_id, bearer.tenant)
    if recent_lane is not None:
        return recent_lane
    try:
        row = await gateway.database.row(bearer, queries.LANE_OF_JOB, bearer.tenant, job_id)
    except ApiError:
        return _default_lane(gateway, bearer)
    if row is None:
        raise not_found("job")
    return int(str(row["partition"]))


def _default_lane(gateway: Gateway, bearer: Bearer) -> int:
    if bearer.tenant is None:
        raise unavailable("reads_unavailable", "Postgres unavailable; name the pool")
    return lane_of_pool(gateway, gateway.access.sender(bearer.tenant).default_pool)
