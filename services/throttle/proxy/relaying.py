"""Passes the answer of an engine on to the client: as a stream, whole, or assembled from one."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from services.throttle.proxy.engine_call import BROKEN, broken_answer
from services.throttle.proxy.progress import AnswerProgress
from services.throttle.proxy.whole_response import JSON, WholeResponse
from services.throttle.relay.client_stream import ClientStream, relay
from services.throttle.relay.errors import refuse
from services.throttle.relay.request import RequestBody, Route
from services.throttle.relay.stream_filter import StreamFilter
from services.throttle.relay.usage import TokenCount
from services.throttle.relay.whole_answer import EngineError, assemble, is_stream, read_whole
from services.throttle.tickets import Ticket
from services.throttle.upstreams.calls import UpstreamAnswer


class AnswerRelay:
    """One answer on its way to the client; `count` has its tokens, `ticket` reports them.

    `limit` are the most output tokens of the request: an engine that goes on is cut off.
    """

    def __init__(
        self,
        request: web.BaseRequest,
        body: RequestBody,
        count: TokenCount,
        ticket: Ticket,
        limit: int,
    ) -> None:
        self._request = request
        self._body = body
        self._count = count
        self._progress = AnswerProgress(ticket, limit)
        self.reason = ""
        """Why the answer is not complete; empty if it is."""
        self._client: ClientStream | None = None

    @property
    def has_passed_all(self) -> bool:
        """Return whether the client was sent the last event of a stream that did not fail."""
        return self._client is not None and self._client.has_all and not self._count.failed

    async def pass_on(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """Return the response. Raises ErrorAnswer where the client has nothing of an answer yet.

        A stream that breaks off later ends with an error event and without its last chunk. Raises
        ClientGone.
        """
        try:
            if not is_stream(answer.headers):
                return await self._pass_whole(answer, headers)
            if self._body.stream:
                return await self._pass_stream(answer, headers)
            return await self._assemble(answer, headers)
        except EngineError as error:
            self.reason = "engine_error"
            raise refuse("upstream_failed", str(error), headers=headers) from None
        except BROKEN as error:
            self.reason = "engine_broke_off"
            raise broken_answer(error, headers) from None

    async def _pass_whole(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """Pass on an answer that is no stream: an error, embeddings, or of an engine without."""
        body = await read_whole(answer.chunks)
        if answer.status < 400:
            self._count.add_answer(body)
        else:
            self.reason = f"status_{answer.status}"
        content_type = answer.headers.get("content-type", JSON)
        if not body:
            # A status such as 204 has no length of its body.
            content = {"content-type": content_type}
            return web.Response(status=answer.status, headers={**headers, **content})
        return WholeResponse(body, headers, answer.status, content_type)

    async def _pass_stream(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        client = self._client = ClientStream(self._request, headers)
        events = StreamFilter(self._count, shows_usage=self._body.shows_usage)
        try:
            await relay(answer.chunks, events, client, self._progress.report)
        except BROKEN as error:
            if not client.is_open:
                raise
            self.reason = "engine_broke_off"
            await client.fail(broken_answer(error, {}).event)
        if self._count.failed:
            self.reason = "engine_error"
        return client.response

    async def _assemble(
        self, answer: UpstreamAnswer, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        body = await assemble_gathered(answer, self._body.route, self._count, self._progress)
        return WholeResponse(body, headers)


async def assemble_gathered(
    answer: UpstreamAnswer, route: Route, count: TokenCount, progress: AnswerProgress
) -> bytes:
    """Return the answer that a stream is the parts of; what follows its first token is gathered.

    Raises the errors of `assemble`.
    """

    def report(count: TokenCount) -> None:
        progress.report(count)
        if count.has_begun:
            answer.gather()

    return await assemble(answer.chunks, route, count, report)
