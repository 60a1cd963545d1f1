"""The response with a whole answer: its head and body are one write, if it is not large."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http.client import responses as REASONS

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import SERVER_SOFTWARE

from services.throttle.relay.client_stream import WRITE_TIMEOUT_S, bound_silence, reset

JSON = "application/json"
PIECE_BYTES = 128 * 1024


class WholeResponse(web.StreamResponse):
    """A response whose body is known; a client has `timeout_s` to take each piece of it.

    `fields` are headers that this service made, so they need no check for line breaks: aiohttp's
    own response checks and orders each header, which costs more than the write. `content_type` may
    be an engine's; one that is no printable ASCII is left out.
    """

    def __init__(
        self,
        body: bytes,
        fields: Mapping[str, str],
        status: int = 200,
        content_type: str = JSON,
        timeout_s: float = WRITE_TIMEOUT_S,
    ) -> None:
        super().__init__(status=status)
        self._whole = body
        self._fields = fields
        is_printable = content_type.isascii() and content_type.isprintable()
        self._media_type = content_type if is_printable else JSON
        self._timeout_s = timeout_s
        self._keeps_alive: bool | None = None
        self._is_sent = False

    @property
    def size_bytes(self) -> int:
        return len(self._whole)

    @property
    def keep_alive(self) -> bool | None:
        return self._keeps_alive

    @property
    def prepared(self) -> bool:
        return self._is_sent

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send it. Raises ConnectionResetError for a client that has left, or takes nothing."""
        if self._is_sent:
            return None
        transport, writer = request.transport, request.writer
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has left")
        self._is_sent, self._keeps_alive = True, request.keep_alive
        data = self._head(request) + self._whole[:PIECE_BYTES]
        writer.output_size += len(data)
        transport.write(data)
        rest = memoryview(self._whole)[PIECE_BYTES:]
        if rest or transport.get_write_buffer_size():
            await self._send_rest(transport, writer, rest)
        return writer

    async def _send_rest(
        self, transport: asyncio.Transport, writer: AbstractStreamWriter, rest: memoryview
    ) -> None:
        """Send what is left, no more of it at once than a piece beyond what the kernel takes."""
        bound_silence(transport, self._timeout_s)
        try:
            await self._drain(writer)
            for begin in range(0, len(rest), PIECE_BYTES):
                piece = rest[begin : begin + PIECE_BYTES]
                writer.output_size += len(piece)
                transport.write(piece)
                await self._drain(writer)
        except TimeoutError:
            reset(transport)
            raise ConnectionResetError("the client takes nothing") from None

    async def _drain(self, writer: AbstractStreamWriter) -> None:
        async with asyncio.timeout(self._timeout_s):
            await writer.drain()

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: it is sent."""

    def _head(self, request: web.BaseRequest) -> bytes:
        major, minor = request.version
        lines = [
            f"HTTP/{major}.{minor} {self.status} {REASONS.get(self.status, '')}",
            *[f"{name}: {value}" for name, value in self._fields.items()],
            f"content-type: {self._media_type}",
            f"content-length: {len(self._whole)}",
            f"date: {rfc822_formatted_time()}",
            f"server: {SERVER_SOFTWARE}",
        ]
        if not self._keeps_alive:
            lines.append("connection: close")
        elif (major, minor) == (1, 0):
            lines.append("connection: keep-alive")
        return "\r\n".join([*lines, "", ""]).encode("ascii")
