"""Writes a stream to a client, which may be slow or leave, and which never takes half for whole."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Literal

from aiohttp import web

from services.throttle.relay.stream_filter import StreamFilter
from services.throttle.relay.usage import TokenCount

WRITE_TIMEOUT_S = 30.0
"""Time in which a client has to take what is buffered for it, at most some 128 KiB."""
SMALL_BYTES = 16 * 1024
RESET_AT_CLOSE = struct.pack("ii", 1, 0)
HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


class ClientGone(Exception):
    """The client left, or took nothing for too long; its connection is closed."""

    def __init__(self, reason: Literal["disconnected", "stalled"]) -> None:
        super().__init__(reason)
        self.reason = reason


class BrokenStream(Exception):
    """The stream of the engine ended before the answer did."""


class ClientStream:
    """The streamed answer to one request. Its headers are sent with the first bytes.

    The server must run with `handler_cancellation`: a client that leaves while the engine is
    silent cancels its handler at once. `is_gone` distinguishes that from a shutdown of the server.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        headers: Mapping[str, str],
        write_timeout_s: float = WRITE_TIMEOUT_S,
    ) -> None:
        self._request = request
        self._timeout_s = write_timeout_s
        self.response = web.StreamResponse(headers={**HEADERS, **headers})
        self.has_all = False
        """Whether the last event of the answer was sent: a client may leave behind it."""

    @property
    def is_open(self) -> bool:
        """Return whether the client gets a stream; until then an error has a status of its own."""
        return self.response.prepared

    @property
    def is_gone(self) -> bool:
        transport = self._request.transport
        return transport is None or transport.is_closing()

    async def write(self, data: bytes) -> None:
        """Send the bytes to the client. Raises ClientGone."""
        transport = self._request.transport
        if transport is None:
            raise ClientGone("disconnected")
        if not self.is_open:
            bound_silence(transport, self._timeout_s)
            await self.response.prepare(self._request)
        if len(data) <= SMALL_BYTES and not transport.get_write_buffer_size():
            # It is buffered at most, and need not be timed.
            await self._write(data)
        else:
            await self._write_timed(data)

    async def finish(self) -> None:
        """End the stream cleanly. Raises ClientGone."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self.response.write_eof()
        except TimeoutError:
            self._abort()
            raise ClientGone("stalled") from None
        except ConnectionError:
            raise ClientGone("disconnected") from None

    async def fail(self, event: bytes = b"") -> None:
        """End an open stream so that the client sees that it is broken, behind an error event.

        Without its last chunk an answer is incomplete; an HTTP/1.0 client, which knows no chunks,
        gets a reset.
        """
        transport = self._request.transport
        if transport is None:
            return
        if event:
            with suppress(ClientGone):
                await self.write(event)
        if self._request.version < (1, 1):
            self._abort()
            return
        transport.close()
        # A client that does not read would keep the connection open.
        asyncio.get_running_loop().call_later(self._timeout_s, transport.abort)

    async def _write(self, data: bytes) -> None:
        try:
            await self.response.write(data)
        except ConnectionError:
            raise ClientGone("disconnected") from None

    async def _write_timed(self, data: bytes) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._write(data)
        except TimeoutError:
            self._abort()
            raise ClientGone("stalled") from None

    def _abort(self) -> None:
        transport = self._request.transport
        if transport is not None:
            reset(transport)


async def relay(
    pieces: AsyncIterator[bytes],
    events: StreamFilter,
    client: ClientStream,
    progress: Callable[[TokenCount], None] = lambda _: None,
) -> None:
    """Pass on the stream of an engine to its end; `progress` is called as its tokens arrive.

    Raises ClientGone, BrokenStream, EventTooLarge and what `pieces` raises. After an error of the
    engine the caller answers it, or fails the stream if it is open.
    """
    async for piece in pieces:
        data = events.feed(piece)
        progress(events.count)
        if data:
            await client.write(data)
        client.has_all = events.count.has_ended
    rest = events.end()
    progress(events.count)
    if not events.count.is_complete:
        # Half an event is not sent: the error behind it could not be read.
        raise BrokenStream("stream: ended before the answer did")
    if rest:
        await client.write(rest)
    await client.finish()


def reset(transport: asyncio.Transport) -> None:
    """Close the connection now, and drop what the kernel has buffered for it."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    transport.abort()


def bound_silence(transport: asyncio.Transport, timeout_s: float) -> None:
    """Let the kernel close the connection where nothing that was sent is acknowledged any more."""
    connection = transport.get_extra_info("socket")
    if connection is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(timeout_s * 1000))
