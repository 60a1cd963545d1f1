"""One attempt: a request to one upstream, up to the first byte of the answer."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

import aiohttp
import msgspec

from services.throttle.upstreams.answers import AnswerChunks
from services.throttle.upstreams.body import LargeBody
from services.throttle.upstreams.calls import UpstreamAnswer, UpstreamCall
from services.throttle.upstreams.connections import UpstreamSessions, new_mark
from services.throttle.upstreams.headers import answer_headers, request_headers
from services.throttle.upstreams.posting import EngineResponse, post
from services.throttle.upstreams.request_errors import (
    RequestFailure,
    failure_of_error,
    failure_of_status,
)
from services.throttle.upstreams.upstream import PooledUpstream

MAX_ERROR_BYTES = 64 * 1024
ERROR_BODY_S = 2.0
"""Limit of the wait for the body of an error."""
MAX_TEXT_CHARS = 2000
STALE = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError)
"""How a request ends on a kept connection that the engine has closed."""


@dataclass(frozen=True, slots=True)
class OpenAnswer:
    """An answer that is to be read, or left."""

    answer: UpstreamAnswer
    chunks: AnswerChunks


class EngineErrorText(msgspec.Struct):
    message: str = ""


class EngineErrorBody(msgspec.Struct):
    error: EngineErrorText | str = ""
    message: str = ""


ERROR_DECODER = msgspec.json.Decoder(EngineErrorBody)


async def open_answer(
    sessions: UpstreamSessions,
    upstream: PooledUpstream,
    call: UpstreamCall,
    body: bytes | LargeBody,
    deadline_s: float,
) -> OpenAnswer | RequestFailure:
    """Send a request; `deadline_s` is the time of the loop at which the first byte is due."""
    mark = new_mark()
    try:
        async with asyncio.timeout_at(deadline_s):
            try:
                return await _exchange(sessions.kept, upstream, call, body)
            except STALE as error:
                if mark.is_new or isinstance(error, aiohttp.ClientConnectorError):
                    raise
            # The engine closed a kept connection just when it was used: it has seen nothing.
            return await _exchange(sessions.fresh, upstream, call, body)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return failure_of_error(error)


async def _exchange(
    session: aiohttp.ClientSession,
    upstream: PooledUpstream,
    call: UpstreamCall,
    body: bytes | LargeBody,
) -> OpenAnswer | RequestFailure:
    response = await _sent(session, upstream, call, body)
    chunks = AnswerChunks(upstream.name, response, call.idle_timeout_s)
    try:
        failure = failure_of_status(response.status, response.headers, time.time())
        if failure is not None or response.status >= 400:
            return await _error_answer(response, upstream.name, chunks, failure)
        await chunks.read_first()
        return _opened(upstream.name, response, chunks)
    except BaseException:
        chunks.close()
        raise


async def _sent(
    session: aiohttp.ClientSession,
    upstream: PooledUpstream,
    call: UpstreamCall,
    body: bytes | LargeBody,
) -> EngineResponse:
    if isinstance(body, bytes):
        target = upstream.target(call.path)
        return await post(session, target, upstream.headers, call.headers, body)
    headers = request_headers(upstream.headers, call.headers)
    headers["Content-Length"] = str(body.size)
    url = upstream.url(call.path)
    return await session.post(url, data=body, headers=headers, allow_redirects=False)


def _opened(name: str, response: EngineResponse, chunks: AnswerChunks) -> OpenAnswer:
    headers = answer_headers(response.headers)
    return OpenAnswer(UpstreamAnswer(name, response.status, headers, chunks, chunks.gather), chunks)


async def _error_answer(
    response: EngineResponse, name: str, chunks: AnswerChunks, failure: RequestFailure | None
) -> OpenAnswer | RequestFailure:
    """Return a failure with the engine's message, or the error as an answer if it is one."""
    body, is_whole = await _read_error(response)
    if failure is None and is_whole:
        chunks.begin_with(body)
        return _opened(name, response, chunks)
    chunks.close()
    if failure is None:
        reason = f"status {response.status}, its text is above {MAX_ERROR_BYTES} bytes or late"
        failure = RequestFailure(response.status, reason, "answered", may_retry=False)
    return replace(failure, engine_text=engine_text(body))


async def _read_error(response: EngineResponse) -> tuple[bytes, bool]:
    """Return the body up to a limit of bytes and time, and whether it is all of it."""
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_S):
            while chunk := await response.content.readany():
                body += chunk
                if len(body) > MAX_ERROR_BYTES:
                    return bytes(body[:MAX_ERROR_BYTES]), False
    except (TimeoutError, aiohttp.ClientError, OSError):
        return bytes(body), False
    return bytes(body), True


def engine_text(body: bytes) -> str:
    """Return the message of an error body, in the forms of OpenAI and of FastAPI; else nothing."""
    try:
        decoded = ERROR_DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    error = decoded.error
    text = error if isinstance(error, str) else error.message
    return (text or decoded.message)[:MAX_TEXT_CHARS]
