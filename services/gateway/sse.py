"""Server-sent events that notice a client that left, stopped reading, or lost its key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from services.gateway.hub import EventFilter, EventHub, Subscriber

ALIVE = b": alive\n\n"
HELLO = b"retry: 2000\n\n"
ALIVE_EVERY_S = 2.0
SEND_WITHIN_S = 10.0
CHUNK_BYTES = 64 * 1024

Allowed = Callable[[], bool]


class EventStream(Response):
    """Sends the frames as they come; ends with the client, or ten seconds after it froze."""

    media_type: str = "text/event-stream"

    def __init__(self, frames: AsyncIterator[bytes]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        pump = asyncio.ensure_future(self._pump(send))
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            pump.cancel()
            await asyncio.gather(pump, gone, return_exceptions=True)
            aclose = getattr(self._frames, "aclose", None)
            if aclose is not None:
                await aclose()
        error = None if pump.cancelled() else pump.exception()
        if error is not None and not isinstance(error, asyncio.TimeoutError):
            raise error

    async def _pump(self, send: Send) -> None:
        async for chunk in self._frames:
            message = {"type": "http.response.body", "body": chunk, "more_body": True}
            await asyncio.wait_for(send(message), SEND_WITHIN_S)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def event_frames(
    hub: EventHub, start: list[int] | None, wanted: EventFilter, allowed: Allowed
) -> AsyncIterator[bytes]:
    """What was missed since `start`, then what happens; nothing between is lost or repeated."""
    yield HELLO
    listener: Subscriber | None = None
    try:
        if start is not None:
            async for frame in hub.missed(start, wanted):
                yield frame
        # From the listener's first moment to `missed` nothing is awaited: both begin at one place.
        listener = hub.listen(wanted)
        if start is not None:
            async for frame in hub.missed(start, wanted):
                yield frame
        async for chunk in live(listener, allowed):
            yield chunk
    finally:
        if listener is not None:
            hub.leave(listener)


async def live(listener: Subscriber, allowed: Allowed) -> AsyncIterator[bytes]:
    while allowed():
        try:
            first = await asyncio.wait_for(listener.queue.get(), ALIVE_EVERY_S)
        except TimeoutError:
            yield ALIVE
            continue
        chunk, over = _gather(listener, first)
        if chunk:
            yield chunk
        if over:
            yield end_frame(listener.lost)
            return
    yield end_frame("key_revoked")


def _gather(listener: Subscriber, first: bytes | None) -> tuple[bytes, bool]:
    """All that waits, up to one chunk: a call per event would cost more than the event."""
    parts: list[bytes] = []
    size = 0
    each = first
    while each is not None:
        parts.append(each)
        size += len(each)
        if size >= CHUNK_BYTES or listener.queue.empty():
            return b"".join(parts), False
        each = listener.queue.get_nowait()
    return b"".join(parts), True


def end_frame(reason: str) -> bytes:
    """Why the stream ends; a client may come back with the id of its last event."""
    return b"event: end\ndata: %b\n\n" % msgspec.json.encode({"reason": reason})
