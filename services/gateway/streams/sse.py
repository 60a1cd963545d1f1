"""Server-sent events that end when the client disconnects, stalls, or loses its key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from services.gateway.streams.hub import EventFilter, EventHub, Subscriber

ALIVE = b": alive\n\n"
WAITING = b": waiting\n\n"
OPENING = b"retry: 2000\n\n"
ALIVE_EVERY_S = 2.0
SEND_TIMEOUT_S = 10.0
CHUNK_BYTES = 64 * 1024

Allowed = Callable[[], bool]


class EventStream(Response):
    """Sends frames as they arrive; ends when the client disconnects or accepts none for 10 s."""

    media_type: str = "text/event-stream"

    def __init__(
        self, frames: AsyncIterator[bytes], on_end: Callable[[], None] = lambda: None
    ) -> None:
        """`on_end` is called once the response is over, however it ends."""
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._frames = frames
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._respond(receive, send)
        finally:
            self._on_end()

    async def _respond(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        pump = asyncio.ensure_future(self._pump(send))
        disconnected = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({pump, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnected.cancel()
            pump.cancel()
            await asyncio.gather(pump, disconnected, return_exceptions=True)
            aclose = getattr(self._frames, "aclose", None)
            if aclose is not None:
                await aclose()
        error = None if pump.cancelled() else pump.exception()
        if error is not None and not isinstance(error, TimeoutError):
            raise error

    async def _pump(self, send: Send) -> None:
        async for chunk in self._frames:
            message = {"type": "http.response.body", "body": chunk, "more_body": True}
            # `wait_for` of Python 3.11 may swallow a cancellation: the stream would never end.
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await send(message)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


async def event_frames(
    hub: EventHub,
    start: list[int] | None,
    accepts: EventFilter,
    allowed: Allowed,
    turns: asyncio.Semaphore | None = None,
) -> AsyncIterator[bytes]:
    """Yield the events since `start`, then live ones; none is lost or repeated.

    A comment is between them, so that a client that needs the past alone need not wait for a time
    without events. Without a start the stream holds what comes after its first frame. The past is
    read in one of the `turns`; other comments keep the stream open until then.
    """
    subscriber = hub.subscribe(accepts) if start is None else None
    try:
        yield OPENING
        if subscriber is None:
            assert start is not None
            async for comment in _in_turn(turns):
                yield comment
            try:
                async for frame in _while(allowed, hub.replay(start, accepts)):
                    yield frame
                # Nothing is awaited between `subscribe` and `replay`: both begin at one position.
                subscriber = hub.subscribe(accepts)
                async for frame in _while(allowed, hub.replay(start, accepts)):
                    yield frame
            finally:
                if turns is not None:
                    turns.release()
            yield ALIVE
        async for chunk in live_frames(subscriber, allowed):
            yield chunk
    finally:
        if subscriber is not None:
            hub.unsubscribe(subscriber)


async def _in_turn(turns: asyncio.Semaphore | None) -> AsyncIterator[bytes]:
    """Yield comments until a turn is taken."""
    while turns is not None:
        try:
            async with asyncio.timeout(ALIVE_EVERY_S):
                await turns.acquire()
        except TimeoutError:
            yield WAITING
        else:
            return


async def _while(allowed: Allowed, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield frames as long as the client may have them."""
    async for frame in frames:
        if not allowed():
            return
        yield frame


async def live_frames(subscriber: Subscriber, allowed: Allowed) -> AsyncIterator[bytes]:
    while allowed():
        try:
            async with asyncio.timeout(ALIVE_EVERY_S):
                first = await subscriber.queue.get()
        except TimeoutError:
            yield ALIVE
            continue
        chunk, is_over = _gather(subscriber, first)
        if chunk:
            yield chunk
        if is_over:
            yield end_frame(subscriber.end_reason)
            return
    yield end_frame("key_revoked")


def _gather(subscriber: Subscriber, first: bytes | None) -> tuple[bytes, bool]:
    """Join queued frames up to one chunk: one call per event would cost more than the event."""
    frames: list[bytes] = []
    size = 0
    frame = first
    while frame is not None:
        frames.append(frame)
        size += len(frame)
        if size >= CHUNK_BYTES or subscriber.queue.empty():
            return b"".join(frames), False
        frame = subscriber.queue.get_nowait()
    return b"".join(frames), True


def end_frame(reason: str, **more: object) -> bytes:
    """Return the frame that ends a stream; a client may resume with the id of its last event."""
    return b"event: end\ndata: %b\n\n" % msgspec.json.encode({"reason": reason, **more})
