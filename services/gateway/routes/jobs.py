"""Jobs: submit, cancel, and everything one may ask about one."""

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
Job = Annotated[JobId, Path(description="the job's id")]


@router.post(
    "",
    status_code=202,
    response_model=SubmissionReceipt,
    responses=problem_responses(400, 413, 415, 422),
    openapi_extra=request_body(FlatJobBody, JobBody),
)
async def submit(request: Request) -> Response:
    """Run a job, or an array of it. A repeat with the same `Idempotency-Key` (or field
    `idempotency_key`) and the same body changes nothing and has the same job id."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "submitter")
    raw = await json_body(request)
    body = parse_submission(raw)
    sender = sender_for(gateway.access, bearer, body.tenant)
    command = submit_job(body, sender, gateway.access.pools(), _key(request, body))
    lane = gateway.access.pools()[command.pool]
    letter = OutgoingCommand(
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
        letter,
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
    """A tenant speaks for itself alone; an operator says for whom."""
    tenant = bearer.tenant or named
    if tenant is None:
        raise InvalidBody([FieldError(field="tenant", rule="an operator says for whom")])
    if not access.view.is_active(tenant):
        raise ApiError(403, "unknown_tenant", f"{tenant} is not registered, or retired")
    return access.sender(tenant)


def _key(request: Request, body: JobBody) -> str:
    """The header serves as well as the field; without either every request is a new wish."""
    header = request.headers.get("idempotency-key")
    if header is None:
        return str(uuid4())
    if not 1 <= len(header) <= 128:
        raise InvalidBody([FieldError(field="Idempotency-Key", rule="has 1 to 128 characters")])
    if body.idempotency_key not in (None, header):
        raise InvalidBody([FieldError(field="idempotency_key", rule="is not what the header says")])
    return header


@router.get("", responses=problem_responses(404, 422))
async def list_jobs(
    request: Request,
    tenant: Annotated[Name | None, Query(description="for operators: whose")] = None,
    phase: Annotated[
        str | None, Query(pattern="^[a-z]{1,20}$", description="such as waiting or running")
    ] = None,
    name: Annotated[NamePart, Query(description="how the name begins")] = None,
    pool: Annotated[Name | None, Query(description="where")] = None,
    array: Annotated[JobId | None, Query(description="the stem of an array's jobs")] = None,
    after: TimeToken = None,
    limit: Limit = 100,
) -> Response:
    """Jobs, the youngest first; `next` is the `after` of the following page."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    sampling_key = scope(bearer, tenant)
    place = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.JOBS, sampling_key, phase, name, pool, array, place.at, place.key, limit
    )
    return json_response(page_of(rows, limit, "submitted_at", "job_id"))


def scope(bearer: Bearer, tenant: str | None) -> str | None:
    """Whose rows may be shown; None: everybody's."""
    if tenant is not None and bearer.tenant not in (None, tenant):
        raise not_found("tenant")
    return bearer.tenant or tenant


async def visible(request: Request, job_id: str) -> tuple[Gateway, Bearer, Body]:
    """The job, where the sender may see it."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    row = await gateway.database.row(bearer, queries.JOB, bearer.tenant, job_id)
    if row is None:
        raise not_found("job")
    return gateway, bearer, row


@router.get("/{job_id}", responses=problem_responses(404))
async def show(request: Request, job_id: Job) -> Response:
    """One job, with its specification (without command and environment)."""
    _, _, row = await visible(request, job_id)
    row["trace_id"] = trace_id(row)
    return json_response(row)


def trace_id(row: Body) -> str:
    parts = str(row.get("traceparent", "")).split("-")
    return parts[1] if len(parts) > 2 else ""


@router.get("/{job_id}/timeline", responses=problem_responses(404))
async def timeline(request: Request, job_id: Job) -> Response:
    """Everything that was decided about the job, in order."""
    return await _history(request, job_id, queries.TIMELINE)


@router.get("/{job_id}/why", responses=problem_responses(404))
async def why(request: Request, job_id: Job) -> Response:
    """Why the job waited, as a time series: each reason with its numbers, from `at` to `until`.

    `line` is the place of a waiting job in the order that priority last advised; `placing` is what
    decided where a job that waits no more was placed.
    """
    gateway, bearer, _ = await visible(request, job_id)
    found = await _told(gateway, bearer, job_id, queries.WHY)
    line = await gateway.database.row(bearer, queries.QUEUE_POSITION, bearer.tenant, job_id)
    placed = await gateway.database.row(bearer, queries.LAST_PLACEMENT, bearer.tenant, job_id)
    return json_response({**found, "line": line, "placing": placing(placed)})


def placing(row: Body | None) -> Body | None:
    """What decided: the order, the score and its model, the solver, and the terms by name."""
    if row is None or not isinstance(data := row["data"], dict):
        return None
    nodes = {lease["node_id"] for lease in data["allocations"]}
    names = ("policy", "score", "model_sha256", "solver", "waited_ms", "terms")
    return {"at": row["at"], **{name: data.get(name) for name in names}, "nodes": sorted(nodes)}


async def _history(request: Request, job_id: str, sql: str) -> Response:
    gateway, bearer, _ = await visible(request, job_id)
    return json_response(await _told(gateway, bearer, job_id, sql))


async def _told(gateway: Gateway, bearer: Bearer, job_id: str, sql: str) -> Body:
    """Events of the job; whose job it made room for is for operators."""
    rows = await gateway.database.rows(bearer, sql, bearer.tenant, job_id)
    if bearer.tenant is not None:
        for data in (row["data"] for row in rows):
            if isinstance(data, dict):
                data.pop("by_job_id", None)
    return {"job_id": job_id, "items": rows}


@router.get("/{job_id}/trace", responses=problem_responses(404))
async def trace(request: Request, job_id: Job) -> Response:
    """The spans of the job's start and of what was decided later, as far as they are kept."""
    gateway, bearer, row = await visible(request, job_id)
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
    """Cancel a job, or every job of an array, whatever its phase."""
    return await cancel(request, job_id)


@router.post(
    "/{job_id}/cancel",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(400, 404, 413, 415, 422),
    openapi_extra=request_body(CancelRequest, required=False),
)
async def cancel(request: Request, job_id: Job) -> Response:
    """Cancel a job, or every job of an array; answered when its end is known."""
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
    """Where the job is: as told, as remembered, as Postgres knows, or where the tenant's are."""
    if pool is not None:
        return lane_of_pool(gateway, pool)
    known = gateway.recent.lane(job_id, bearer.tenant)
    if known is not None:
        return known
    try:
        row = await gateway.database.row(bearer, queries.LANE_OF_JOB, bearer.tenant, job_id)
    except ApiError:
        return _default_lane(gateway, bearer)
    if row is None:
        raise not_found("job")
    return int(str(row["partition"]))


def _default_lane(gateway: Gateway, bearer: Bearer) -> int:
    if bearer.tenant is None:
        raise unavailable("reads_unavailable", "name the pool while Postgres is away")
    return lane_of_pool(gateway, gateway.access.sender(bearer.tenant).default_pool)
