"""Jobs: submit, cancel, and everything one may ask about one."""

from __future__ import annotations

from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Request, Response

from services.gateway import queries
from services.gateway.access import Access
from services.gateway.body import json_body
from services.gateway.core.faults import Fault, Invalid
from services.gateway.core.strict import Body, checked
from services.gateway.core.submission import (
    CancelOrder,
    FlatJobBody,
    JobBody,
    Sender,
    job_body,
    job_ids,
    submit_job,
)
from services.gateway.docs import refusals, takes
from services.gateway.entry import entered
from services.gateway.orders import (
    COMMANDS,
    Submitted,
    Ticket,
    accepted,
    lane_of_pool,
    new_command_id,
    order,
    send,
    shown,
)
from services.gateway.outbox import Letter
from services.gateway.paging import Limit, NamePart, TimePage, TimeToken, page
from services.gateway.parts import Gateway, gateway
from services.gateway.problem import Refusal, not_found, unavailable
from shared.contracts.base import JobId, Name
from shared.contracts.jobs import CancelJob
from shared.contracts.registry import Bearer
from shared.telemetry.traced import spans_visible_to

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
Job = Annotated[JobId, Path(description="the job's id")]


@router.post(
    "",
    status_code=202,
    response_model=Submitted,
    responses=refusals(400, 413, 415, 422),
    openapi_extra=takes(FlatJobBody, JobBody),
)
async def submit(request: Request) -> Response:
    """Run a job, or an array of it. A repeat with the same `Idempotency-Key` (or field
    `idempotency_key`) and the same body changes nothing and has the same job id."""
    parts = gateway(request)
    bearer = await entered(request, "submitter")
    raw = await json_body(request)
    body = job_body(raw)
    sender = sender_of(parts.access, bearer, body.tenant)
    command = submit_job(body, sender, parts.access.pools(), _key(request, body))
    lane = parts.access.pools()[command.pool]
    letter = Letter(
        new_command_id(),
        command,
        command.job_id,
        sender.tenant,
        command.pool,
        principal=bearer.principal,
        access_next=parts.access.next,
    )
    ticket = await send(
        request,
        parts,
        "submit",
        COMMANDS,
        lane,
        letter,
        {"job.id": command.job_id, "tenant.id": sender.tenant, "pool.id": command.pool},
    )
    parts.recent.note(command.job_id, sender.tenant, lane)
    return accepted(
        Submitted(
            command_id=ticket.command_id,
            trace_id=ticket.trace_id,
            job_id=command.job_id,
            job_ids=job_ids(command),
            idempotency_key=command.idempotency_key,
            pool=command.pool,
        )
    )


def sender_of(access: Access, bearer: Bearer, named: str | None) -> Sender:
    """A tenant speaks for itself alone; an operator says for whom."""
    tenant = bearer.tenant or named
    if tenant is None:
        raise Invalid([Fault(field="tenant", rule="an operator says for whom")])
    if not access.view.is_active(tenant):
        raise Refusal(403, "unknown_tenant", f"{tenant} is not registered, or retired")
    return access.sender(tenant)


def _key(request: Request, body: JobBody) -> str:
    """The header serves as well as the field; without either every request is a new wish."""
    header = request.headers.get("idempotency-key")
    if header is None:
        return str(uuid4())
    if not 1 <= len(header) <= 128:
        raise Invalid([Fault(field="Idempotency-Key", rule="has 1 to 128 characters")])
    if body.idempotency_key not in (None, header):
        raise Invalid([Fault(field="idempotency_key", rule="is not what the header says")])
    return header


@router.get("", responses=refusals(404, 422))
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
    parts = gateway(request)
    bearer = await entered(request, "viewer")
    sampling_key = scope(bearer, tenant)
    place = TimePage.read(after)
    rows = await parts.database.rows(
        bearer, queries.JOBS, sampling_key, phase, name, pool, array, place.at, place.key, limit
    )
    return shown(page(rows, limit, "submitted_at", "job_id"))


def scope(bearer: Bearer, tenant: str | None) -> str | None:
    """Whose rows may be shown; None: everybody's."""
    if tenant is not None and bearer.tenant not in (None, tenant):
        raise not_found("tenant")
    return bearer.tenant or tenant


async def visible(request: Request, job_id: str) -> tuple[Gateway, Bearer, Body]:
    """The job, where the sender may see it."""
    parts = gateway(request)
    bearer = await entered(request, "viewer")
    row = await parts.database.row(bearer, queries.JOB, bearer.tenant, job_id)
    if row is None:
        raise not_found("job")
    return parts, bearer, row


@router.get("/{job_id}", responses=refusals(404))
async def show(request: Request, job_id: Job) -> Response:
    """One job, with its specification (without command and environment)."""
    _, _, row = await visible(request, job_id)
    row["trace_id"] = trace_id(row)
    return shown(row)


def trace_id(row: Body) -> str:
    parts = str(row.get("traceparent", "")).split("-")
    return parts[1] if len(parts) > 2 else ""


@router.get("/{job_id}/timeline", responses=refusals(404))
async def timeline(request: Request, job_id: Job) -> Response:
    """Everything that was decided about the job, in order."""
    return await _history(request, job_id, queries.TIMELINE)


@router.get("/{job_id}/why", responses=refusals(404))
async def why(request: Request, job_id: Job) -> Response:
    """Why the job waited, as a time series: each reason with its numbers, from `at` to `until`.

    `line` is the place of a waiting job in the order that priority last advised; `placing` is what
    decided where a job that waits no more was placed.
    """
    parts, bearer, _ = await visible(request, job_id)
    found = await _told(parts, bearer, job_id, queries.WHY)
    line = await parts.database.row(bearer, queries.PLACE_IN_LINE, bearer.tenant, job_id)
    placed = await parts.database.row(bearer, queries.LAST_PLACING, bearer.tenant, job_id)
    return shown({**found, "line": line, "placing": placing(placed)})


def placing(row: Body | None) -> Body | None:
    """What decided: the order, the score and its model, the solver, and the terms by name."""
    if row is None or not isinstance(data := row["data"], dict):
        return None
    nodes = {lease["node_id"] for lease in data["allocations"]}
    names = ("policy", "score", "model_sha256", "solver", "waited_ms", "terms")
    return {"at": row["at"], **{name: data.get(name) for name in names}, "nodes": sorted(nodes)}


async def _history(request: Request, job_id: str, sql: str) -> Response:
    parts, bearer, _ = await visible(request, job_id)
    return shown(await _told(parts, bearer, job_id, sql))


async def _told(parts: Gateway, bearer: Bearer, job_id: str, sql: str) -> Body:
    """Events of the job; whose job it made room for is for operators."""
    rows = await parts.database.rows(bearer, sql, bearer.tenant, job_id)
    if bearer.tenant is not None:
        for data in (row["data"] for row in rows):
            if isinstance(data, dict):
                data.pop("by_job_id", None)
    return {"job_id": job_id, "items": rows}


@router.get("/{job_id}/trace", responses=refusals(404))
async def trace(request: Request, job_id: Job) -> Response:
    """The spans of the job's start and of what was decided later, as far as they are kept."""
    parts, bearer, row = await visible(request, job_id)
    spans = [*parts.ring.trace(trace_id(row)), *parts.ring.by_job(job_id)]
    unique = list({(span.trace_id, span.span_id): span for span in spans}.values())
    if bearer.tenant is not None:
        unique = spans_visible_to(unique, bearer.tenant, job_id)
    return shown({"job_id": job_id, "spans": parts.ring.to_json(unique)})


@router.delete("/{job_id}", status_code=202, response_model=Ticket, responses=refusals(404, 422))
async def delete(request: Request, job_id: Job) -> Response:
    """Cancel a job, or every job of an array, whatever its phase."""
    return await cancel(request, job_id)


@router.post(
    "/{job_id}/cancel",
    status_code=202,
    response_model=Ticket,
    responses=refusals(400, 404, 413, 415, 422),
    openapi_extra=takes(CancelOrder, required=False),
)
async def cancel(request: Request, job_id: Job) -> Response:
    """Cancel a job, or every job of an array; answered when its end is known."""
    parts = gateway(request)
    bearer = await entered(request, "submitter")
    body = checked(CancelOrder, await json_body(request))
    lane = await _lane(parts, bearer, job_id, body.pool)
    command = CancelJob(job_id=job_id, tenant=bearer.tenant, reason=body.reason)
    return accepted(
        await order(
            request,
            parts,
            bearer,
            command,
            lane=lane,
            subject=job_id,
            span="cancel",
            pool=body.pool or "",
        )
    )


async def _lane(parts: Gateway, bearer: Bearer, job_id: str, pool: str | None) -> int:
    """Where the job is: as told, as remembered, as Postgres knows, or where the tenant's are."""
    if pool is not None:
        return lane_of_pool(parts, pool)
    known = parts.recent.lane(job_id, bearer.tenant)
    if known is not None:
        return known
    try:
        row = await parts.database.row(bearer, queries.LANE_OF_JOB, bearer.tenant, job_id)
    except Refusal:
        return _default_lane(parts, bearer)
    if row is None:
        raise not_found("job")
    return int(str(row["partition"]))


def _default_lane(parts: Gateway, bearer: Bearer) -> int:
    if bearer.tenant is None:
        raise unavailable("reads_unavailable", "name the pool while Postgres is away")
    return lane_of_pool(parts, parts.access.sender(bearer.tenant).default_pool)
