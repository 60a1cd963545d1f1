"""The response with a whole answer: its head and body are one write."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import SERVER_SOFTWARE


class WholeResponse(web.StreamResponse):
    """A response with JSON and status 200.

    `fields` are headers of this service, which are no text of a client or engine: aiohttp's own
    response checks and orders each header, which costs more than the write.
    """

    def __init__(self, body: bytes, fields: Mapping[str, str]) -> None:
        super().__init__()
        self._whole = body
        self._fields = fields
        self._keeps_alive: bool | None = None
        self._is_sent = False

    @property
    def keep_alive(self) -> bool | None:
        return self._keeps_alive

    @property
    def prepared(self) -> bool:
        return self._is_sent

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send it. Raises ConnectionResetError for a client that has left."""
        if self._is_sent:
            return None
        transport, writer = request.transport, request.writer
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has left")
        self._is_sent, self._keeps_alive = True, request.keep_alive
        data = self._head(request) + self._whole
        transport.write(data)
        writer.output_size += len(data)
        await writer.drain()
        return writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: it is sent."""

    def _head(self, request: web.BaseRequest) -> bytes:
        major, minor = request.version
        lines = [
            f"HTTP/{major}.{minor} 200 OK",
            *[f"{name}: {value}" for name, value in self._fields.items()],
            "content-type: application/json",
            f"content-length: {len(self._whole)}",
            f"date: {rfc822_formatted_time()}",
            f"server: {SERVER_SOFTWARE}",
        ]
        if not self._keeps_alive:
            lines.append("connection: close")
        elif (major, minor) == (1, 0):
            lines.append("connection: keep-alive")
        return "\r\n".join([*lines, "", ""]).encode("ascii")
