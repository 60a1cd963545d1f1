"""Reads and decodes the bodies of requests: in time, within bounds, and off the loop if large."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from aiohttp import web

from services.throttle.proxy.admission import OpenEntry
from services.throttle.relay.errors import ErrorAnswer, refuse
from services.throttle.relay.large_json import LARGE_BYTES
from services.throttle.relay.prompt_size import PromptSize, prompt_size
from services.throttle.relay.request import InvalidRequest, RequestBody, Route

MAX_BODY_BYTES = 16 * 1024 * 1024
BODY_S = 60.0
"""Time in which a body has to arrive."""


class ReadBody(NamedTuple):
    """A request as it was sent, and the size of its prompt."""

    body: RequestBody
    size: PromptSize


class BodyReader:
    """One thread decodes large bodies, one after the other: more would starve the loop."""

    def __init__(self, timeout_s: float = BODY_S) -> None:
        self._timeout_s = timeout_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-bodies")

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def read(self, request: web.Request, route: Route, entry: OpenEntry) -> ReadBody:
        """Raises ErrorAnswer."""
        try:
            if request.content.is_eof():
                data = await _received(request, entry)
            else:
                async with asyncio.timeout(self._timeout_s):
                    data = await _received(request, entry)
        except TimeoutError:
            text = f"body: not complete after {self._timeout_s:g} s; send it faster"
            raise refuse("body_timeout", text) from None
        except web.RequestPayloadError:
            text = "body: invalid encoding; a body as its headers describe it is required"
            raise refuse("invalid_body", text, param="body") from None
        try:
            return await self._decoded(route, data)
        except InvalidRequest as error:
            raise refuse("invalid_body", str(error), param=error.field) from None

    async def _decoded(self, route: Route, data: bytes) -> ReadBody:
        if len(data) <= LARGE_BYTES:
            return decoded(route, data)
        return await asyncio.get_running_loop().run_in_executor(self._thread, decoded, route, data)


def decoded(route: Route, data: bytes) -> ReadBody:
    """Raises InvalidRequest."""
    body = RequestBody.decode(route, data)
    return ReadBody(body, prompt_size(body.fields))


async def _received(request: web.Request, entry: OpenEntry) -> bytes:
    """Return the whole body, counted as it arrives. Raises ErrorAnswer."""
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise _too_large()
    content = request.content
    parts: list[bytes] = []
    size = 0
    while part := await content.readany():
        entry.take(len(part))
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise _too_large()
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large() -> ErrorAnswer:
    text = f"body: too large; at most {MAX_BODY_BYTES} bytes are allowed"
    return refuse("body_too_large", text)
