"""Server-sent events: accepted events and the output of workers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Annotated, cast

from aiokafka.errors import KafkaError
from fastapi import APIRouter, Path, Query, Request, Response

from berth_client import answers
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.vector import decode_vector
from services.gateway.reads import queries
from services.gateway.reads.database import Row
from services.gateway.requests.authorization import authorize
from services.gateway.requests.commands import json_response
from services.gateway.requests.current_job import all_stays
from services.gateway.requests.filters import check_types
from services.gateway.responses.openapi import Responses, problem_responses
from services.gateway.responses.problem import ApiError, unavailable
from services.gateway.routes.jobs import visible_job
from services.gateway.streams.hub import EventFilter, EventHeader
from services.gateway.streams.job_log import JobNow, NextStay, Selection
from services.gateway.streams.log_lines import JobOutput, Shows, is_stored, read_lines
from services.gateway.streams.recent_lines import reach_end
from services.gateway.streams.sse import EventStream, event_frames
from services.gateway.streams.stays import StayOutput, follow_stays
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.base import JobId
from shared.contracts.registry import Bearer
from shared.job_logs.chunk import JobKey
from shared.objects.objects import StoreUnreachable

log = logging.getLogger(__name__)
router = APIRouter(prefix="/v1", tags=["streams"])
SENT_EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "id": {"type": "string"},
        "retry": {"type": "integer"},
    },
}
STREAM: Responses = {200: {"content": {EventStream.media_type: {"itemSchema": SENT_EVENT}}}}


@router.get("/events", response_class=Response, responses={**problem_responses(422), **STREAM})
async def events(
    request: Request,
    types: Annotated[
        str, Query(max_length=1024, description="only these types, comma-separated")
    ] = "",
    subject: Annotated[
        str, Query(max_length=128, description="only this subject: a job, a node, ...")
    ] = "",
    since: Annotated[
        str,
        Query(
            max_length=2048, description="`start` or an event id; Last-Event-ID takes precedence"
        ),
    ] = "",
) -> Response:
    """Stream accepted events as CloudEvents; tenants receive their own. A client that reconnects
    with the id of its last event in `Last-Event-ID` misses none. A client that reads too slowly
    receives an event `end` and is disconnected."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    requested = frozenset(filter(None, types.split(",")))
    check_types(sorted(requested))
    start = _start(gateway, request.headers.get("last-event-id") or since)
    accepts = _filter(bearer.tenant, requested, subject)
    turns = gateway.streams.turns_of(bearer)
    allowed = lambda: gateway.access.is_live(bearer)  # noqa: E731
    frames = event_frames(gateway.hub, start, accepts, allowed, turns)
    return _stream(gateway, bearer, frames)


def _start(gateway: Gateway, since: str) -> list[int] | None:
    if gateway.hub.vector is None:
        raise unavailable("broker_unavailable", "event stream not started yet; retry")
    if not since:
        return None
    if since == "start":
        return [0] * gateway.hub.partitions
    position = decode_vector(since, gateway.hub.partitions)
    if position is None:
        raise InvalidBody(
            [
                FieldError(
                    field="Last-Event-ID",
                    value=since[:64],
                    rule="must be an event id of this stream",
                )
            ]
        )
    return position


def _filter(tenant: str | None, types: frozenset[str], subject: str) -> EventFilter:
    def accepts(header: EventHeader) -> bool:
        return (
            tenant in (None, header.tenant)
            and (not types or header.type in types)
            and (not subject or header.subject == subject)
        )

    return accepts


@router.get(
    "/jobs/{job_id}/logs",
    responses={**problem_responses(404, 422), 200: {"model": answers.JobLogs, **STREAM[200]}},
)
async def logs(
    request: Request,
    job_id: Annotated[JobId, Path(description="the job's id")],
    follow: Annotated[bool, Query(description="follow as server-sent events")] = (False),
    tail: Annotated[
        int, Query(ge=1, le=10_000, description="number of lines: the last ones, or the first ones")
    ] = 1000,
    rank: Annotated[
        int | None, Query(ge=0, le=1_000_000, description="lines of this rank alone")
    ] = None,
    attempt: Annotated[
        int | None, Query(ge=1, le=1_000_000, description="lines of this attempt alone")
    ] = None,
    from_line: Annotated[
        int | None,
        Query(
            ge=0,
            le=2**53,
            description="the first `tail` lines from this number on, not the last; needs `rank` and"
            " `attempt`",
        ),
    ] = None,
    status: Annotated[
        bool,
        Query(
            description="events `status` of the followed stream: phase, reason, attempt, and the"
            " failure of the attempt before"
        ),
    ] = (False),
    open_lines: Annotated[
        bool,
        Query(description="events `open` of the followed stream: lines that are not ended yet"),
    ] = (False),
) -> Response:
    """Show the output of the job's workers, which is kept for the days of the pool's setting
    `logs_kept_d`. `missing` of a line is the number of lines before it that are not kept. With
    `from_line` an answer can be read on where it ends. A followed stream begins with the oldest
    line, goes on in the pools to which the job is transferred, where lines have its `job_id` there,
    and ends with an event `end` when the job has ended: its reason is `ended`, or
    `output_missing` where for some seconds neither a line nor the end of the output came from the
    `workers` that it names."""
    if from_line is not None and (rank is None or attempt is None):
        rule = "needs rank and attempt: lines of each worker have numbers of their own"
        raise InvalidBody([FieldError(field="from_line", value=from_line, rule=rule)])
    gateway, bearer, row = await visible_job(request, job_id)
    selection = Selection(tail, rank, attempt, from_line)
    outputs = _Outputs(gateway, bearer, str(row["tenant"]), selection)
    job_id, lane = str(row["job_id"]), int(str(row["partition"]))
    if follow:
        for stay in (await all_stays(gateway, bearer, row))[:1]:
            job_id, lane = stay["job_id"], stay["partition"]
        allowed = lambda: gateway.access.is_live(bearer)  # noqa: E731
        first = outputs.of(lane, job_id)
        frames = follow_stays(first, outputs.of_next, allowed, Shows(status, open_lines))
        return _stream(gateway, bearer, frames)
    output, read_job = outputs.of(lane, job_id)
    try:
        if not await is_stored(output, read_job):
            await reach_end(gateway.recent_lines, lane)
        lines = await read_lines(output)
    except (KafkaError, OSError) as error:
        raise unavailable("broker_unavailable", type(error).__name__) from None
    except StoreUnreachable as error:
        # Its place is of no concern to the tenant.
        log.warning("output cannot be read", extra={"reason": str(error)})
        raise unavailable("output_unreachable", "stored output cannot be read now") from None
    return json_response({"job_id": job_id, "lines": lines})


class _Outputs:
    """Opens the output of a job in each of its pools, for one reader."""

    def __init__(self, gateway: Gateway, bearer: Bearer, tenant: str, selection: Selection) -> None:
        self._gateway = gateway
        self._bearer = bearer
        self._tenant = tenant
        self._selection = selection

    def of(self, lane: int, job_id: str, *, is_later: bool = False) -> StayOutput:
        gateway, key = self._gateway, JobKey(lane, self._tenant, job_id)
        output = JobOutput(
            gateway.recent_lines, gateway.job_logs, key, self._selection, is_later=is_later
        )
        return StayOutput(output, lambda: _job_now(gateway, self._bearer, job_id))

    def of_next(self, stay: NextStay) -> StayOutput | None:
        """Return the output in the pool that the job went to; None if that was deleted."""
        lane = self._gateway.access.pools().get(stay.pool)
        return None if lane is None else self.of(lane, stay.job_id, is_later=True)


async def _job_now(gateway: Gateway, bearer: Bearer, job_id: str) -> JobNow | None:
    """Return the job; None as long as Postgres does not answer."""
    try:
        row = await gateway.database.row(bearer, queries.JOB_OF_LOG, bearer.tenant, job_id)
    except ApiError:
        return None
    if row is None:
        return None
    return JobNow(
        str(row["phase"]),
        str(row["reason"]),
        int(str(row["attempt"])),
        int(str(row["workers"])),
        prints=row["backend"] != "virtual",
        started=bool(row["started_at"]),
        silent_nodes=tuple(cast("list[str]", row["silent_nodes"])),
        failure=cast("Row | None", row["failure"]),
        pool=str(row["pool"] or ""),
        next_stay=_next_stay(row["transferred_to"]),
    )


def _next_stay(target: object) -> NextStay | None:
    return NextStay(target["pool"], target["job_id"]) if isinstance(target, dict) else None


def _stream(gateway: Gateway, bearer: Bearer, frames: AsyncIterator[bytes]) -> EventStream:
    return EventStream(frames, gateway.streams.take(bearer))
