"""Reads and decodes the bodies of requests: in time, within bounds, and off the loop if large."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from aiohttp import web

from services.throttle.proxy.open_requests import OpenEntry
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

    async def read(self, request: web.BaseRequest, route: Route, entry: OpenEntry) -> ReadBody:
        """Return the body, decoded. Raises ErrorAnswer."""
        parts = await self._receive(request, entry)
        try:
            return await self._decode(route, parts)
        except InvalidRequest as error:
            raise refuse("invalid_body", str(error), param=error.field) from None

    async def _receive(self, request: web.BaseRequest, entry: OpenEntry) -> list[bytes]:
        # Most bodies have arrived already: a timer for each would cost more than it is worth.
        try:
            if request.content.is_eof():
                return await _read_all(request, entry)
            async with asyncio.timeout(self._timeout_s):
                return await _read_all(request, entry)
        except TimeoutError:
            text = f"body: not complete after {self._timeout_s:g} s; send it faster"
            raise refuse("body_timeout", text) from None
        except web.RequestPayloadError:
            text = "body: invalid encoding; a body as its headers describe it is required"
            raise refuse("invalid_body", text, param="body") from None

    async def _decode(self, route: Route, parts: list[bytes]) -> ReadBody:
        if sum(map(len, parts)) <= LARGE_BYTES:
            return decode(route, parts)
        return await asyncio.get_running_loop().run_in_executor(self._thread, decode, route, parts)


def decode(route: Route, parts: list[bytes]) -> ReadBody:
    """Return the body and the size of its prompt. Raises InvalidRequest.

    Large parts are joined without the lock of the interpreter: the event loop goes on meanwhile.
    """
    body = RequestBody.decode(route, parts[0] if len(parts) == 1 else b"".join(parts))
    return ReadBody(body, prompt_size(body.fields))


async def _read_all(request: web.BaseRequest, entry: OpenEntry) -> list[bytes]:
    """Return the parts of the whole body, counted as they arrive. Raises ErrorAnswer."""
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise _too_large()
    content = request.content
    parts: list[bytes] = []
    size = 0
    while part := await content.readany():
        entry.add_bytes(len(part))
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise _too_large()
        parts.append(part)
    return parts


def _too_large() -> ErrorAnswer:
    text = f"body: too large; at most {MAX_BODY_BYTES} bytes are allowed"
    return refuse("body_too_large", text)
