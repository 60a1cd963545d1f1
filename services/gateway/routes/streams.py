"""Server-sent events: what happens, and what workers print."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from aiokafka.errors import KafkaError
from fastapi import APIRouter, Path, Query, Request, Response

from services.gateway.core.faults import Fault, Invalid
from services.gateway.core.vector import decode_vector
from services.gateway.docs import Responses, refusals
from services.gateway.entry import entered
from services.gateway.hub import Head, Wanted
from services.gateway.loglines import JobLog, followed_lines, past_lines
from services.gateway.orders import shown
from services.gateway.parts import Gateway, gateway
from services.gateway.problem import Refusal, unavailable
from services.gateway.routes.jobs import visible
from services.gateway.sse import EventStream, event_frames
from shared.contracts.base import JobId

router = APIRouter(prefix="/v1", tags=["streams"])
STREAM: Responses = {200: {"content": {EventStream.media_type: {}}}}


@router.get("/events", responses={**refusals(422), **STREAM})
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
    parts = gateway(request)
    bearer = await entered(request, "viewer")
    start = _start(parts, request.headers.get("last-event-id") or since)
    wanted = _wanted(bearer.tenant, frozenset(filter(None, types.split(","))), subject)
    frames = event_frames(parts.hub, start, wanted, lambda: parts.access.is_live(bearer))
    return _stream(parts, frames)


def _start(parts: Gateway, since: str) -> list[int] | None:
    if parts.hub.vector is None:
        raise unavailable("broker_unavailable", "the events are not read yet")
    if not since:
        return None
    if since == "start":
        return [0] * parts.hub.partitions
    place = decode_vector(since, parts.hub.partitions)
    if place is None:
        raise Invalid([Fault(field="Last-Event-ID", value=since[:64], rule="no id of this stream")])
    return place


def _wanted(tenant: str | None, types: frozenset[str], subject: str) -> Wanted:
    def wanted(head: Head) -> bool:
        return (
            tenant in (None, head.tenant)
            and (not types or head.type in types)
            and (not subject or head.subject == subject)
        )

    return wanted


@router.get("/jobs/{job_id}/logs", responses=refusals(404, 422))
async def logs(
    request: Request,
    job_id: Annotated[JobId, Path(description="the job's id")],
    follow: Annotated[bool, Query(description="as server-sent events, for as long as wanted")] = (
        False
    ),
    tail: Annotated[int, Query(ge=1, le=10_000, description="the last lines only")] = 1000,
) -> Response:
    """What the job's workers printed, as far as it is kept (24 h)."""
    parts, bearer, row = await visible(request, job_id)
    job, lane = JobLog(job_id, str(row["tenant"])), int(str(row["partition"]))
    if follow:
        allowed = lambda: parts.access.is_live(bearer)  # noqa: E731
        return _stream(parts, followed_lines(parts.open_log, lane, job, allowed))
    try:
        lines = await past_lines(parts.open_log, lane, job)
    except (KafkaError, OSError) as error:
        raise unavailable("broker_unavailable", type(error).__name__) from None
    return shown({"job_id": job_id, "lines": lines[-tail:]})


def _stream(parts: Gateway, frames: AsyncIterator[bytes]) -> EventStream:
    if parts.streams >= parts.settings.streams:
        raise Refusal(
            503,
            "too_many_streams",
            "every stream of this gateway is taken",
            headers={"Retry-After": "10"},
        )
    return EventStream(_counted(parts, frames))


async def _counted(parts: Gateway, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    parts.streams += 1
    try:
        async for frame in frames:
            yield frame
    finally:
        parts.streams -= 1
        aclose = getattr(frames, "aclose", None)
        if aclose is not None:
            await aclose()
