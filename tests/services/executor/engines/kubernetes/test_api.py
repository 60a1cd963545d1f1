"""A client of the API leaves it in peace for as long as it requires."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from services.executor.engines.engine import EngineAway
from services.executor.engines.kubernetes.access import Access
from services.executor.engines.kubernetes.api import (
    LONGEST_PAUSE_S,
    MOST_AT_ONCE,
    ApiRefusal,
    KubernetesApi,
)
from tests.patience import until
from tests.services.executor.engines.kubernetes.fake_api import PATH, FakeApi, serving


@pytest.mark.parametrize("status", [429, 503])
async def test_nothing_is_sent_before_the_pause_is_over_that_the_api_requires(status: int) -> None:
    fake = FakeApi()
    fake.status, fake.headers = status, {"Retry-After": "3600"}
    async with serving(fake) as api:
        with pytest.raises(EngineAway, match=f"{status}: why"):
            await api.read(PATH)
        fake.status = 200
        with pytest.raises(EngineAway, match="Retry-After") as paused:
            await api.read(PATH)
        assert f"for {LONGEST_PAUSE_S:g}" in str(paused.value) or "for 59" in str(paused.value)
        with pytest.raises(EngineAway, match="Retry-After"):
            async with api.stream(PATH, {}):
                pass
    assert len(fake.queries) == 1


async def test_a_refusal_or_a_pause_of_no_length_stops_nothing() -> None:
    fake = FakeApi()
    fake.status, fake.headers = 403, {"Retry-After": "3600"}
    async with serving(fake) as api:
        with pytest.raises(ApiRefusal, match="why"):
            await api.read(PATH)
        fake.status, fake.headers = 429, {"Retry-After": "soon"}
        with pytest.raises(EngineAway):
            await api.read(PATH)
        fake.status = 200
        assert (await api.read(PATH))["items"] == []


async def test_requests_share_so_many_connections() -> None:
    connections, goes_on = set[object](), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        connections.add(request.transport)
        await goes_on.wait()
        return web.json_response({})

    app = web.Application()
    app.router.add_get(PATH, answer)
    async with TestServer(app, host="127.0.0.1") as server:
        api = KubernetesApi(Access(str(server.make_url("")).rstrip("/"), None))
        reads = [asyncio.create_task(api.read(PATH)) for _ in range(MOST_AT_ONCE + 8)]
        await until(lambda: len(connections) == MOST_AT_ONCE)
        goes_on.set()
        await asyncio.gather(*reads)
        await api.close()
    assert len(connections) == MOST_AT_ONCE
