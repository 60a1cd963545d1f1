"""Requests to the API of a cluster."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import aiohttp
import msgspec

from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.access import Access, renewed

LIMIT_S = 20.0
SILENT_S = 120.0
"""A watch of which no byte comes for so long is opened again; bookmarks come each minute."""
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""In s and packets: of a log that is quiet for days the connection is known to live."""
LONGEST_PAUSE_S = 60.0
"""Of a `Retry-After`."""
MOST_AT_ONCE = 64
"""Requests in flight, without streams: each takes a connection, which is kept for the next."""
LINE_BYTES = 2**22
"""Longest line of a watch, which is one object."""
PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
"""Of a patch that merges lists by their keys, such as conditions by their types."""
AWAY = frozenset({401, 408, 429})
"""Statuses, with those of 500 and more, that say nothing about the request itself."""

Row = dict[str, Any]


NOT_FOUND, CONFLICT, INVALID = 404, 409, 422
"""Statuses of HTTP that the API of Kubernetes has for what is gone, newer or malformed."""


class ApiRefusal(Exception):
    """The API does not do this: the status of HTTP, its reason and its words."""

    def __init__(self, status: int, reason: str, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.reason = reason


class KubernetesApi:
    """One client of a cluster; it is made where a loop runs, and closed at the end."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None
        self._paused_until_s = 0.0
        self._at_once = asyncio.Semaphore(MOST_AT_ONCE)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def read(self, path: str, **query: str) -> Row:
        return await self._request("GET", path, query=query)

    async def create(self, path: str, manifest: Row) -> Row:
        return await self._request("POST", path, manifest)

    async def replace(self, path: str, manifest: Row) -> Row:
        return await self._request("PUT", path, manifest)

    async def patch(self, path: str, change: Row, kind: str = PATCH) -> Row:
        return await self._request("PATCH", path, change, kind=kind)

    async def delete(self, path: str, options: Row | None = None) -> Row:
        return await self._request("DELETE", path, options or {})

    async def read_bytes(self, path: str, limit: int, **query: str) -> bytes:
        """Return the first bytes of an answer that is no JSON, such as a log."""
        async with self.stream(path, query) as response, asyncio.timeout(LIMIT_S):
            try:
                return await response.content.readexactly(limit)
            except asyncio.IncompleteReadError as error:
                return error.partial

    async def _request(
        self,
        method: str,
        path: str,
        body: Row | None = None,
        *,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Row:
        """Return the answer. Raises ApiRefusal, and EngineAway where the outcome is unknown."""
        try:
            async with (
                self._at_once,
                asyncio.timeout(LIMIT_S),
                self._open().request(
                    method,
                    self._access.server + path,
                    params=query,
                    data=None if body is None else msgspec.json.encode(body),
                    headers=self._headers(kind),
                    ssl=self._access.tls or True,
                ) as response,
            ):
                await self._check(response)
                answer: Row = msgspec.json.decode(await response.read())
                return answer
        except TimeoutError:
            raise EngineAway(f"{method} {path}: no answer within {LIMIT_S:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise EngineAway(f"{method} {path}: {error or type(error).__name__}") from None

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        query: Mapping[str, str],
        buffer_bytes: int = LINE_BYTES,
        silent_s: float | None = SILENT_S,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open an answer without an end; `silent_s` is the longest time between two of its bytes.

        Raises ApiRefusal, EngineAway.
        """
        silence = aiohttp.ClientTimeout(sock_connect=LIMIT_S, sock_read=silent_s)
        try:
            async with self._open().get(
                self._access.server + path,
                params=query,
                headers=self._headers(),
                timeout=silence,
                read_bufsize=buffer_bytes,
                ssl=self._access.tls or True,
            ) as response:
                await self._check(response)
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise EngineAway(f"GET {path}: {error or type(error).__name__}") from None

    def _open(self) -> aiohttp.ClientSession:
        """Return the session, with the present credentials. Raises EngineAway in a pause."""
        left_s = self._paused_until_s - monotonic()
        if left_s > 0:
            raise EngineAway(f"nothing is sent for {left_s:.1f} s, by the API's Retry-After")
        self._access = renewed(self._access)
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, socket_factory=_socket)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=aiohttp.ClientTimeout(), trust_env=False
            )
        return self._session

    def _headers(self, kind: str = "application/json") -> dict[str, str]:
        token = self._access.bearer()
        own = {"Authorization": f"Bearer {token}"} if token else {}
        return {"Content-Type": kind, "User-Agent": "berth-executor", **own}

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        """Raise ApiRefusal or EngineAway for an answer that is an error."""
        if response.status < 400:
            return
        text = (await response.content.read(4096)).decode(errors="replace")
        reason, words = "", text
        try:
            answer = msgspec.json.decode(text)
            reason, words = str(answer.get("reason") or ""), str(answer.get("message") or text)
        except (ValueError, AttributeError):
            pass
        if response.status in AWAY or response.status >= 500:
            pause = response.headers.get("Retry-After", "")
            if pause.isdecimal():
                self._paused_until_s = monotonic() + min(float(pause), LONGEST_PAUSE_S)
            raise EngineAway(f"{response.status}: {words[:300]}")
        raise ApiRefusal(response.status, reason, words[:1000])


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket that notices a peer that is gone, also while nothing is sent."""
    opened = socket.socket(*address[:3])
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return opened
