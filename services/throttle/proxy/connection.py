"""Connections of the proxy: what aiohttp itself refuses is an error of the OpenAI API as well."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from services.throttle.relay.errors import ErrorAnswer, refuse

HEADERS_S = 30.0
"""Time until the headers of a connection's next request are complete; it is closed then."""
CONTINUE = "100-continue"
RULE = "HTTP/1.1 with at most 128 headers, each line of at most 8190 bytes,"

log = logging.getLogger(__name__)


class OpenAiConnection(web.RequestHandler):
    """One connection; a request that aiohttp cannot read is answered in JSON, and logged briefly:
    the error of its parser quotes headers, which may hold a key."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status >= 500:
            log.error("request failed", exc_info=exc)
            text = "service: failed on the request; its log has the cause"
            error = refuse("internal_error", text)
        else:
            # Whoever reaches the port can send any number of these.
            log.debug("request refused", extra={"status": status, "why": type(exc).__name__})
            text = f"request: malformed; {RULE} is required"
            error = refuse("invalid_http", text)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun, and cannot become an error")
        response = error_response(error)
        response.force_close()
        return response

    def log_exception(self, *args: Any, **fields: Any) -> None:
        """Log an error of this service; a body of an invalid encoding is none."""
        if isinstance(fields.get("exc_info"), HttpProcessingError | web.RequestPayloadError):
            log.debug("body refused")
        else:
            super().log_exception(*args, **fields)


def connections(server: web.Server) -> Callable[[], asyncio.Protocol]:
    """Return what makes a connection of the server."""
    loop = asyncio.get_running_loop()
    options: dict[str, Any] = {"access_log": None, "keepalive_timeout": HEADERS_S}
    return lambda: OpenAiConnection(server, loop=loop, **options)


async def expect(request: web.BaseRequest) -> web.Response | None:
    """Let a client that waits for it go on; any other expectation is refused."""
    value = request.headers.get("expect", "")
    if value.lower() != CONTINUE:
        text = f"expect: {value[:64]!r}; only {CONTINUE!r} can be met"
        return error_response(refuse("expectation_failed", text))
    if request.version >= (1, 1):
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # The answer itself has not begun.
        request.writer.output_size = 0
    return None


def error_response(error: ErrorAnswer) -> web.Response:
    headers = {**error.headers, "content-type": "application/json"}
    return web.Response(body=error.body, status=error.status, headers=headers)
