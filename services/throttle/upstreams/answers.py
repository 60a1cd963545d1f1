"""The body of an answer while it arrives: chunks, a limit of silence, and how it ended."""

from __future__ import annotations

import asyncio
from math import inf

import aiohttp

from services.throttle.upstreams.calls import UpstreamBroken
from services.throttle.upstreams.connections import BUFFER_BYTES
from services.throttle.upstreams.posting import EngineResponse

CHECK_S = 1.0
"""Period of the checks, and so what a limit of silence may be late by.

They also notice a connection that the client library closed without an error: it does so where
the form of a body is invalid, and its reader would wait for ever.
"""

GATHER_S = 0.1
"""Pause between two looks at an answer that is gathered, which the end of the answer cuts short."""

MANY = 2


class IdleWatch:
    """Closes a response for which a reader has waited too long; a timer per answer, not chunk."""

    def __init__(self, response: EngineResponse) -> None:
        self.waiting_since: float | None = None
        self.limit_s = inf
        self.has_expired = False
        self._response = response
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(CHECK_S, self._check)

    def stop(self) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        now, since = self._loop.time(), self.waiting_since
        end = inf if since is None else since + self.limit_s
        self.has_expired = end <= now
        if self.has_expired or (since is not None and self._is_lost()):
            self._response.close()
        else:
            self._timer = self._loop.call_at(min(end, now + CHECK_S), self._check)

    def _is_lost(self) -> bool:
        connection = self._response.connection
        return connection is not None and connection.transport is None


class AnswerChunks:
    """The chunks of a body; empty ones do not occur."""

    def __init__(self, upstream: str, response: EngineResponse, idle_timeout_s: float) -> None:
        self.has_ended = False
        """Whether the body was complete."""
        self.break_reason = ""
        self._upstream = upstream
        self._response = response
        self._first = b""
        self._content = response.content
        self._idle_timeout_s = idle_timeout_s
        self._clock = asyncio.get_running_loop().time
        self._watch = IdleWatch(response)
        self._gathers = False

    async def read_first(self) -> None:
        """Wait for the first chunk. Raises the errors of the connection as they are."""
        self._watch.waiting_since = self._clock()
        self.begin_with(await read_available(self._content))

    def begin_with(self, first: bytes) -> None:
        """Take the first chunk; the limit of silence holds from now on."""
        self._first = first
        self._watch.waiting_since = None
        self._watch.limit_s = self._idle_timeout_s

    def gather(self) -> None:
        """Let the rest arrive in larger chunks, at its end or after a while: no client waits for
        its parts. Engines send a chunk per token, and to wake the reader costs more than to read.
        """
        self._gathers = True

    def __aiter__(self) -> AnswerChunks:
        return self

    async def __anext__(self) -> bytes:
        if chunk := self._first:
            self._first = b""
            return chunk
        watch = self._watch
        watch.waiting_since = self._clock()
        try:
            if self._gathers:
                await until_gathered(self._content)
            chunk = await read_available(self._content)
            # A fast engine would wait at the limit of the buffer for each pause.
            self._gathers = self._gathers and len(chunk) < BUFFER_BYTES
        except (aiohttp.ClientError, OSError) as error:
            raise self._broken(error) from None
        if not chunk:
            self.has_ended = True
            watch.stop()
            raise StopAsyncIteration
        watch.waiting_since = None
        return chunk

    def close(self) -> None:
        """Abort the connection unless the body is complete: the engine then stops at once."""
        self._watch.stop()
        self.has_ended = self.has_ended or self._is_complete()
        abort(self._response)

    def _is_complete(self) -> bool:
        content = self._response.content
        return content.is_eof() and content.exception() is None

    def _broken(self, error: Exception) -> UpstreamBroken:
        self._watch.stop()
        self.break_reason = "answer broke off"
        if self._watch.has_expired:
            self.break_reason = f"silent for {self._idle_timeout_s:g} s"
        elif isinstance(error, OSError):
            self.break_reason = "connection reset"
        return UpstreamBroken(self._upstream, self.break_reason)


async def until_gathered(content: aiohttp.StreamReader) -> None:
    """Return once the body is complete or has failed, or something of it waits after a pause."""
    while not content.is_eof() and content.exception() is None:
        try:
            async with asyncio.timeout(GATHER_S):
                await content.wait_eof()
        except TimeoutError:
            if getattr(content, "_buffer", ()):
                return


async def read_available(content: aiohttp.StreamReader) -> bytes:
    """Return what has arrived, as `readany` does; wait for it if it is nothing yet.

    Engines send a chunk per token. `readany` keeps the account of its buffer for each of them: here
    it is kept once for all that have arrived. Of a body that broke off, what had arrived comes
    first: its tokens were made.
    """
    arrived = len(getattr(content, "_buffer", ()))
    if arrived < MANY and (content.exception() is None or not arrived):
        return await content.readany()
    buffer, splits = content._buffer, content._http_chunk_splits
    data = b"".join(buffer)
    buffer.clear()
    if splits:
        splits.clear()
    content._size = 0
    content._cursor += len(data)
    content._protocol.resume_reading()
    return data


def abort(response: EngineResponse) -> None:
    """Close the connection now, also if the engine has not yet taken the whole request.

    A response that was read to its end has given its connection back, and nothing happens.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()
