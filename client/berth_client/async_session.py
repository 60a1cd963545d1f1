"""Requests of the REST API for asyncio: the methods of `Session`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from berth_client import answers, calls, transport
from berth_client.calls import Call, Query
from berth_client.errors import BerthError
from berth_client.following import AGAIN_S, AWAY_S, Continuation, Report, ignore
from berth_client.installation import InstallationAddress
from berth_client.transport import RETRIES, StreamEvent
from berth_client.waiting import installation_of

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")


class AsyncSession:
    """Sends requests to a gateway, and reads its answers, pages and streams."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        ca: str | None = None,
        folder: Path | None = None,
        retries: int = RETRIES,
    ) -> None:
        self._connect(installation_of(url, key, ca, folder), retries)

    def _connect(self, installation: InstallationAddress, retries: int) -> None:
        self.installation = installation
        self._retries = retries
        self._options = transport.options_of(installation)
        self._opened: httpx2.AsyncClient | None = None

    @property
    def _http(self) -> httpx2.AsyncClient:
        if self._opened is None:
            import httpx2

            trust = transport.trust_of(self.installation)
            self._opened = httpx2.AsyncClient(**self._options, verify=trust)
        return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def send(self, call: Call[T]) -> T:
        """Send any request and return its answer."""
        return await self._send(call)

    async def pages(
        self, call: Call[answers.Page[T]], limit: int | None = None
    ) -> AsyncIterator[T]:
        """Yield the rows of a list, page by page, at most `limit`."""
        following: Call[answers.Page[T]] | None = call
        left = limit
        while following is not None:
            page = await self.send(following)
            rows = page["items"] if left is None else page["items"][:left]
            for row in rows:
                yield row
            left = None if left is None else left - len(rows)
            following = calls.following(following, page) if left is None or left else None

    def stream(
        self, path: str, query: Query | None = None, *, alive: bool = False
    ) -> AsyncIterator[StreamEvent]:
        """Yield server-sent events until the stream ends, by an event `end`.

        With `alive` also the gateway's keep-alive comments, as events `alive` without data.
        """
        return self._stream(Call("GET", path, query or {}), alive)

    async def follow(
        self, path: str, query: Query | None = None, report: Report = ignore, away_s: float = AWAY_S
    ) -> AsyncIterator[StreamEvent]:
        """Yield the events of a stream up to its event `end`; one that breaks off is opened again.

        A stream whose events have ids goes on behind the last one, another begins anew. Raises
        BerthError if the first attempt fails, or after `away_s` seconds without an answer.
        """
        continuation = Continuation(query or {}, report, away_s)
        while True:
            try:
                async for event in self._stream(Call("GET", path, continuation.query), True):
                    if continuation.note(event):
                        yield event
                        if event.name == "end":
                            return
            except BerthError as error:
                continuation.endure(error)
            await asyncio.sleep(AGAIN_S)

    async def _look(self, call: Call[T]) -> T | BerthError:
        """Return the answer, or the error of one that may come later."""
        try:
            return await self._send(call)
        except BerthError as error:
            if error.status != 404 and not error.is_temporary:
                raise
            return error

    async def _send(self, call: Call[T]) -> T:
        attempt = 0
        while True:
            try:
                answer: T = await self._exchange(call)
                return answer
            except BerthError as error:
                if not call.repeatable or not error.is_temporary or attempt == self._retries:
                    raise
                await asyncio.sleep(transport.pause_s(error, attempt))
            attempt += 1

    async def _exchange(self, call: Call[Any]) -> Any:
        http, options = self._http, transport.request_of(call)
        with transport.failures(self.installation.url):
            response = await http.request(call.method, call.path, **options)
        return transport.content_of(response)

    async def _stream(self, call: Call[Any], alive: bool) -> AsyncIterator[StreamEvent]:
        http, options, reader = self._http, transport.request_of(call), transport.EventReader()
        stream = http.stream(call.method, call.path, timeout=transport.STREAM_TIMEOUT_S, **options)
        with transport.failures(self.installation.url):
            async with stream as response:
                if response.status_code >= 400:
                    await response.aread()
                    transport.content_of(response)
                async for raw in response.aiter_bytes():
                    for event in reader.feed(raw):
                        if alive or event.name != "alive":
                            yield event
                reader.check_end()
