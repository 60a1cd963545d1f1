"""Requests to the API of a cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.access import Access

LIMIT_S = 20.0
SILENT_S = 120.0
"""A watch or log of which no byte comes for so long is opened again; bookmarks come each minute."""
LINE_BYTES = 2**22
"""Longest line of a watch, which is one object."""
PATCH = "application/merge-patch+json"
AWAY = frozenset({401, 408, 429})
"""Statuses, with those of 500 and more, that say nothing about the request itself."""

Row = dict[str, Any]


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

    async def patch(self, path: str, change: Row) -> Row:
        return await self._request("PATCH", path, change, kind=PATCH)

    async def delete(self, path: str, options: Row | None = None) -> Row:
        return await self._request("DELETE", path, options or {})

    async def read_bytes(self, path: str, limit: int, **query: str) -> bytes:
        """Return the first bytes of an answer that is no JSON, such as a log."""
        async with self.stream(path, query) as response, asyncio.timeout(LIMIT_S):
            return await response.content.read(limit)

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
                asyncio.timeout(LIMIT_S),
                self._open().request(
                    method,
                    self._access.server + path,
                    params=query,
                    data=None if body is None else json.dumps(body),
                    headers=self._headers(kind),
                ) as response,
            ):
                await _check(response)
                answer: Row = await response.json(content_type=None)
                return answer
        except TimeoutError:
            raise EngineAway(f"{method} {path}: no answer within {LIMIT_S:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise EngineAway(f"{method} {path}: {error or type(error).__name__}") from None

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], buffer_bytes: int = LINE_BYTES
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open an answer without an end. Raises ApiRefusal, EngineAway."""
        silence = aiohttp.ClientTimeout(sock_connect=LIMIT_S, sock_read=SILENT_S)
        try:
            async with self._open().get(
                self._access.server + path,
                params=query,
                headers=self._headers(),
                timeout=silence,
                read_bufsize=buffer_bytes,
            ) as response:
                await _check(response)
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise EngineAway(f"GET {path}: {error or type(error).__name__}") from None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ssl=self._access.tls or True)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=aiohttp.ClientTimeout(), trust_env=False
            )
        return self._session

    def _headers(self, kind: str = "application/json") -> dict[str, str]:
        token = self._access.bearer()
        own = {"Authorization": f"Bearer {token}"} if token else {}
        return {"Content-Type": kind, "User-Agent": "berth-executor", **own}


async def _check(response: aiohttp.ClientResponse) -> None:
    if response.status < 400:
        return
    text = (await response.content.read(4096)).decode(errors="replace")
    reason, words = "", text
    try:
        answer = json.loads(text)
        reason, words = str(answer.get("reason") or ""), str(answer.get("message") or text)
    except (ValueError, AttributeError):
        pass
    if response.status in AWAY or response.status >= 500:
        raise EngineAway(f"{response.status}: {words[:300]}")
    raise ApiRefusal(response.status, reason, words[:1000])
