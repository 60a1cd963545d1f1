"""A pass-through before the engine that notes each request which the engine saw."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import aiohttp
import msgspec
from aiohttp import web

from services.throttle.relay.sse import SseParser
from services.throttle.relay.usage import TokenCount


class UserOfBody(msgspec.Struct):
    user: str = ""


@dataclass(slots=True)
class SeenRequest:
    """One request at the side of the engine, and the tokens that it made."""

    count: TokenCount
    has_ended: bool = False

    @property
    def tokens(self) -> int:
        """Output tokens that the engine made; by its usage where the answer is complete."""
        usage = self.count.usage
        return usage.completion_tokens if usage is not None else self.count.chunks


class EngineRecorder:
    """Requests by their field `user`, which the clients make unique; others do not count."""

    def __init__(self, engine_url: str) -> None:
        self._engine_url = engine_url
        self._client: aiohttp.ClientSession
        self.seen: dict[str, SeenRequest] = {}
        self.twice = 0
        """Requests that the engine was sent a second time."""

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(self._engine_url, connector=connector) as self._client:
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", port).start()
                yield
            finally:
                await runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        seen = self._note(data) if request.method == "POST" else None
        headers = {"content-type": request.headers.get("content-type", "application/json")}
        async with self._client.request(
            request.method, request.path, data=data, headers=headers
        ) as answer:
            kind = answer.headers.get("content-type", "application/json")
            response = web.StreamResponse(status=answer.status, headers={"content-type": kind})
            await response.prepare(request)
            with suppress(ConnectionResetError):  # The process before it was killed.
                await self._relay(answer, response, seen)
                await response.write_eof()
            return response

    def _note(self, data: bytes) -> SeenRequest | None:
        user = msgspec.json.decode(data, type=UserOfBody).user
        if not user:
            return None
        self.twice += user in self.seen
        seen = self.seen[user] = SeenRequest(TokenCount("chat/completions"))
        return seen

    @staticmethod
    async def _relay(
        answer: aiohttp.ClientResponse, response: web.StreamResponse, seen: SeenRequest | None
    ) -> None:
        parser = SseParser()
        async for chunk in answer.content.iter_any():
            if seen is not None:
                for event in parser.feed(chunk):
                    seen.count.add(event)
            await response.write(chunk)
        if seen is not None:
            seen.has_ended = seen.count.is_complete
