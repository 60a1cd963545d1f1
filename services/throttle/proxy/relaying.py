"""Passes the answer of an engine on to the client: as a stream, or assembled from one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from aiohttp import web

from services.throttle.relay.assemble import AnswerAssembler, MalformedStream
from services.throttle.relay.errors import refuse
from services.throttle.relay.request import RequestBody
from services.throttle.relay.sse import EventTooLarge, SseEvent, SseParser
from services.throttle.relay.stream_filter import StreamFilter
from services.throttle.relay.usage import TokenCount
from services.throttle.tickets import Ticket
from services.throttle.upstreams.calls import UpstreamAnswer, UpstreamBroken

MOST_ANSWER_BYTES = 64 * 1024 * 1024
WRITE_S = 60.0
"""Longest time in which a client reads nothing of what is ready for it."""

STREAM = "text/event-stream"


class Relay:
    """One answer on its way to the client; `count` has its tokens, `ticket` reports them."""

    def __init__(
        self,
        request: web.Request,
        body: RequestBody,
        count: TokenCount,
        ticket: Ticket,
        clock: Callable[[], float],
    ) -> None:
        self._request = request
        self._body = body
        self._count = count
        self._ticket = ticket
        self._clock = clock
        self._response: web.StreamResponse | None = None
        self.is_complete = False
        self.reason = ""

    async def pass_on(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """Raises UpstreamBroken if the engine breaks off, ErrorAnswer for what cannot be read."""
        is_stream = answer.headers.get("content-type", "").startswith(STREAM)
        if not is_stream:
            return await self._pass_whole(answer, headers)
        if self._body.stream:
            return await self._pass_stream(answer, headers)
        return await self._assemble(answer, headers)

    def abort(self) -> None:
        """Cut the connection of a client that has a part of a stream: it must not look ended."""
        transport = self._request.transport
        if self._response is not None and transport is not None:
            transport.abort()

    async def _pass_whole(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """Pass on an answer that is no stream: an error, embeddings, or of an engine without."""
        body = bytearray()
        async for chunk in answer.chunks:
            body += chunk
            if len(body) > MOST_ANSWER_BYTES:
                raise UpstreamBroken(answer.upstream, f"answer above {MOST_ANSWER_BYTES} bytes")
        if answer.status < 400:
            self._count.add_answer(bytes(body))
        self.is_complete = answer.status < 400
        self.reason = "" if self.is_complete else f"status_{answer.status}"
        content = {"content-type": answer.headers.get("content-type", "application/json")}
        return web.Response(body=bytes(body), status=answer.status, headers={**headers, **content})

    async def _pass_stream(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        content = {"content-type": answer.headers["content-type"], "cache-control": "no-cache"}
        response = web.StreamResponse(status=answer.status, headers={**headers, **content})
        self._response = response
        await response.prepare(self._request)
        filter_ = StreamFilter(self._count, shows_usage=self._body.shows_usage)
        try:
            async for chunk in answer.chunks:
                await self._write(response, filter_.feed(chunk))
            await self._write(response, filter_.end())
        except EventTooLarge as error:
            raise UpstreamBroken(answer.upstream, str(error)) from None
        if not self._count.is_complete:
            raise UpstreamBroken(answer.upstream, "stream ended before the answer was complete")
        self.is_complete = not self._count.failed
        self.reason = "engine_error" if self._count.failed else ""
        await response.write_eof()
        return response

    async def _write(self, response: web.StreamResponse, data: bytes) -> None:
        self._ticket.made_tokens = self._count.chunks
        if data:
            async with asyncio.timeout(WRITE_S):
                await response.write(data)

    async def _assemble(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        assembler, parser = AnswerAssembler(self._body.route), SseParser()
        try:
            async for chunk in answer.chunks:
                self._take(assembler, parser.feed(chunk))
            self._take(assembler, parser.end())
            if assembler.error is not None:
                self.reason = "engine_error"
                raise refuse("upstream_failed", str(assembler.error.get("message", "")))
            body = assembler.answer()
        except (EventTooLarge, MalformedStream) as error:
            raise UpstreamBroken(answer.upstream, str(error)) from None
        if not self._count.is_complete:
            raise UpstreamBroken(answer.upstream, "stream ended before the answer was complete")
        self.is_complete = True
        return web.Response(body=body, headers={**headers, "content-type": "application/json"})

    def _take(self, assembler: AnswerAssembler, events: list[SseEvent]) -> None:
        for event in events:
            self._count.add(event)
            assembler.add(event)
        self._ticket.made_tokens = self._count.chunks
