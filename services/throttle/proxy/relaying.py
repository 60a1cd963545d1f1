"""Passes the answer of an engine on to the client: as a stream, whole, or assembled from one."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from services.throttle.relay.assemble import AnswerAssembler, MalformedStream
from services.throttle.relay.client_stream import BrokenStream, ClientStream, relay
from services.throttle.relay.errors import ErrorAnswer, refuse
from services.throttle.relay.request import RequestBody
from services.throttle.relay.sse import EventTooLarge, SseEvent, SseParser
from services.throttle.relay.stream_filter import StreamFilter
from services.throttle.relay.usage import TokenCount
from services.throttle.tickets import Ticket
from services.throttle.upstreams.calls import UpstreamAnswer, UpstreamBroken

MOST_ANSWER_BYTES = 64 * 1024 * 1024
STREAM = "text/event-stream"
JSON = "application/json"


class AnswerRelay:
    """One answer on its way to the client; `count` has its tokens, `ticket` reports them."""

    def __init__(
        self, request: web.Request, body: RequestBody, count: TokenCount, ticket: Ticket
    ) -> None:
        self._request = request
        self._body = body
        self._count = count
        self._ticket = ticket
        self.reason = ""
        """Why the answer is not complete; empty if it is."""

    async def pass_on(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """Return the response. Raises ErrorAnswer where the client has nothing of an answer yet.

        A stream that breaks off later ends with an error event and without its last chunk. Raises
        ClientGone.
        """
        is_stream = answer.headers.get("content-type", "").startswith(STREAM)
        try:
            if is_stream and self._body.stream:
                return await self._pass_stream(answer, headers)
            if is_stream:
                return await self._assemble(answer, headers)
            return await self._pass_whole(answer, headers)
        except (UpstreamBroken, BrokenStream, EventTooLarge, MalformedStream) as error:
            self.reason = "engine_broke_off"
            raise refuse("upstream_failed", f"engine: {_text(error)}", headers=headers) from None

    async def _pass_whole(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """Pass on an answer that is no stream: an error, embeddings, or of an engine without."""
        body = bytearray()
        async for chunk in answer.chunks:
            body += chunk
            if len(body) > MOST_ANSWER_BYTES:
                raise MalformedStream(f"answer: more than {MOST_ANSWER_BYTES} bytes")
        if answer.status < 400:
            self._count.add_answer(bytes(body))
        else:
            self.reason = f"status_{answer.status}"
        content = {"content-type": answer.headers.get("content-type", JSON)}
        return web.Response(body=bytes(body), status=answer.status, headers={**headers, **content})

    async def _pass_stream(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        client = ClientStream(self._request, headers)
        events = StreamFilter(self._count, shows_usage=self._body.shows_usage)
        try:
            await relay(answer.chunks, events, client, self._report)
        except (UpstreamBroken, BrokenStream, EventTooLarge) as error:
            if not client.is_open:
                raise
            self.reason = "engine_broke_off"
            await client.fail(_broken(error).event)
        if self._count.failed:
            self.reason = "engine_error"
        return client.response

    def _report(self, count: TokenCount) -> None:
        self._ticket.made_tokens = count.chunks

    async def _assemble(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        assembler, parser = AnswerAssembler(self._body.route), SseParser()
        async for chunk in answer.chunks:
            self._take(assembler, parser.feed(chunk))
        self._take(assembler, parser.end())
        if assembler.error is not None:
            self.reason = "engine_error"
            text = str(assembler.error.get("message", "engine: reported an error"))
            raise refuse("upstream_failed", text, headers=headers)
        if not self._count.is_complete:
            raise BrokenStream("stream: ended before the answer did")
        return web.Response(body=assembler.answer(), headers={**headers, "content-type": JSON})

    def _take(self, assembler: AnswerAssembler, events: list[SseEvent]) -> None:
        for event in events:
            self._count.add(event)
            assembler.add(event)
        self._report(self._count)


def _broken(error: Exception) -> ErrorAnswer:
    return refuse("upstream_failed", f"engine: {_text(error)}")


def _text(error: Exception) -> str:
    return error.reason if isinstance(error, UpstreamBroken) else str(error)
