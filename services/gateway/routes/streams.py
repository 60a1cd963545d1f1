"""Server-sent events: what happens, and what workers print."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from aiokafka.errors import KafkaError
from fastapi import APIRouter, Path, Query, Request, Response

from services.gateway.authorization import authorize
from services.gateway.commands import json_response
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.vector import decode_vector
from services.gateway.hub import EventFilter, EventHeader
from services.gateway.log_lines import JobLog, followed_lines, past_lines
from services.gateway.openapi import Responses, problem_responses
from services.gateway.problem import ApiError, unavailable
from services.gateway.routes.jobs import visible
from services.gateway.sse import EventStream, event_frames
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.base import JobId

router = APIRouter(prefix="/v1", tags=["streams"])
STREAM: Responses = {200: {"content": {EventStream.media_type: {}}}}


@router.get("/events", responses={**problem_responses(422), **STREAM})
async def events(
    request: Request,
    types: Annotated[str, Query(max_length=1024, description="wire names, by commas")] = "",
    subject: Annotated[str, Query(max_length=128, description="a job, node, ... alone")] = "",
    since: Annotated[
        str, Query(max_length=2048, description="`start`, or an id; Last-Event-ID goes before")
    ] = "",
) -> Response:
    """Accepted events as CloudEvents, a tenant's own for its keys. The id of each event is a place:
    a client that comes back with it in `Last-Event-ID` misses nothing. A client that reads too
    slowly is told so by an event `end` and cut off."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    start = _start(gateway, request.headers.get("last-event-id") or since)
    wanted = _wanted(bearer.tenant, frozenset(filter(None, types.split(","))), subject)
    frames = event_frames(gateway.hub, start, wanted, lambda: gateway.access.is_live(bearer))
    return _stream(gateway, frames)


def _start(gateway: Gateway, since: str) -> list[int] | None:
    if gateway.hub.vector is None:
        raise unavailable("broker_unavailable", "the events are not read yet")
    if not since:
        return None
    if since == "start":
        return [0] * gateway.hub.partitions
    place = decode_vector(since, gateway.hub.partitions)
    if place is None:
        raise InvalidBody(
            [FieldError(field="Last-Event-ID", value=since[:64], rule="no id of this stream")]
        )
    return place


def _wanted(tenant: str | None, types: frozenset[str], subject: str) -> EventFilter:
    def wanted(head: EventHeader) -> bool:
        return (
            tenant in (None, head.tenant)
            and (not types or head.type in types)
            and (not subject or head.subject == subject)
        )

    return wanted


@router.get("/jobs/{job_id}/logs", responses=problem_responses(404, 422))
async def logs(
    request: Request,
    job_id: Annotated[JobId, Path(description="the job's id")],
    follow: Annotated[bool, Query(description="as server-sent events, for as long as wanted")] = (
        False
    ),
    tail: Annotated[int, Query(ge=1, le=10_000, description="the last lines only")] = 1000,
) -> Response:
    """What the job's workers printed, as far as it is kept (24 h)."""
    gateway, bearer, row = await visible(request, job_id)
    job, lane = JobLog(job_id, str(row["tenant"])), int(str(row["partition"]))
    if follow:
        allowed = lambda: gateway.access.is_live(bearer)  # noqa: E731
        return _stream(gateway, followed_lines(gateway.open_log, lane, job, allowed))
    try:
        lines = await past_lines(gateway.open_log, lane, job)
    except (KafkaError, OSError) as error:
        raise unavailable("broker_unavailable", type(error).__name__) from None
    return json_response({"job_id": job_id, "lines": lines[-tail:]})


def _stream(gateway: Gateway, frames: AsyncIterator[bytes]) -> EventStream:
    if gateway.streams >= gateway.settings.streams:
        raise ApiError(
            503,
            "too_many_streams",
            "every stream of this gateway is taken",
            headers={"Retry-After": "10"},
        )
    return EventStream(_counted(gateway, frames))


async def _counted(gateway: Gateway, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    gateway.streams += 1
    try:
        async for frame in frames:
            yield frame
    finally:
        gateway.streams -= 1
        aclose = getattr(frames, "aclose", None)
        if aclose is not None:
            await aclose()
