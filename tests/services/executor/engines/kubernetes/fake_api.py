"""An API of two pods on the loopback, of which a test decides what its watches do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from services.executor.engines.kubernetes.access import Access
from services.executor.engines.kubernetes.api import KubernetesApi

PATH = "/api/v1/pods"


def row(name: str, version: int, value: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "resourceVersion": str(version)}
    return {"metadata": metadata, "value": value}


def change(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": item}


GONE = change("ERROR", {"code": 410, "message": "too old resource version"})


class FakeApi:
    """Answers lists with `items`, and watches with the next of `watches`, the last one for ever."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.later: list[dict[str, Any]] | None = None
        """Items from the first watch on."""
        self.version = 1
        self.watches: list[list[dict[str, Any]]] = []
        self.queries: list[dict[str, str]] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        """Of an answer that is an error."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        self.queries.append(query)
        if self.status != 200:
            body = {"message": "why", "reason": "Reason"}
            return web.json_response(body, status=self.status, headers=self.headers)
        if query.get("watch"):
            return await self._watch(request)
        page = self.items[int(query.get("continue", 0)) :]
        metadata = {"resourceVersion": str(self.version)}
        if len(page) > 1:
            metadata["continue"] = str(len(self.items) - len(page) + 1)
        return web.json_response({"metadata": metadata, "items": page[:1]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.items = self.items if self.later is None else self.later
        response = web.StreamResponse()
        await response.prepare(request)
        changes = self.watches.pop(0) if self.watches else None
        for item in changes or ():
            await response.write(json.dumps(item).encode() + b"\n")
        if changes is None:
            await asyncio.Event().wait()
        return response


@asynccontextmanager
async def serving(fake: FakeApi) -> AsyncIterator[KubernetesApi]:
    """Serve it, and yield a client of it."""
    app = web.Application()
    app.router.add_get(PATH, fake.answer)
    async with TestServer(app, host="127.0.0.1") as server:
        api = KubernetesApi(Access(str(server.make_url("")).rstrip("/"), None, "t"))
        yield api
        await api.close()
