"""A tenant over its rate limit, over real HTTP: only its own requests are refused."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from infra.machine.process import free_ports
from shared.contracts.base import Name
from shared.telemetry.scrape import scrape
from tests.patience import PATIENCE_S
from tests.services.gateway.kafka.test_ingress import record_body
from tests.services.gateway.stack import (
    KEYS,
    Stack,
    as_gateway,
    fill_access,
    ready,
    start_broker,
    start_gateway,
)

pytestmark = pytest.mark.process

PER_S, BURST = 2, 30
FLOOD, OTHERS = 600, 25
RECORDS = 100
LIMIT = f"at most {PER_S} requests per second with a burst of {BURST}, per tenant"


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def url(stack: Stack, metrics_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("rate")
    running, http = start_gateway(
        folder,
        stack.kafka,
        as_gateway(stack.dsn),
        BERTH_TENANT_RATE=str(PER_S),
        BERTH_TENANT_BURST=str(BURST),
        BERTH_METRICS_PORT=str(metrics_port),
    )
    asyncio.run(ready(http))
    yield http
    running.stop()


@asynccontextmanager
async def client_of(url: str, tenant: Name) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {KEYS[tenant]}"}
    async with aiohttp.ClientSession(url, headers=headers) as session:
        yield session


async def request_times(client: aiohttp.ClientSession, times: int) -> Counter[int]:
    async def once() -> int:
        async with client.get("/v1/jobs") as response:
            await response.read()
            return response.status

    return Counter(await asyncio.gather(*(once() for _ in range(times))))


async def test_a_flood_of_one_tenant_is_limited_and_another_tenant_is_not(
    url: str, metrics_port: int
) -> None:
    async with client_of(url, "bob") as bob, client_of(url, "ada") as ada:
        start_s = time.monotonic()
        flood, others = await asyncio.gather(request_times(bob, FLOOD), request_times(ada, OTHERS))
        elapsed_s = time.monotonic() - start_s
    assert others[200] and not others[429], "a busy database may answer 503"
    assert {200, 429} <= flood.keys() <= {200, 429, 503}
    assert BURST <= flood[200] + flood[503] <= BURST + PER_S * elapsed_s + 1
    scraped = scrape("gateway", f"127.0.0.1:{metrics_port}")
    assert scraped.series("berth_requests_limited_total") == [({"tenant": "bob"}, flood[429])]


async def test_a_refused_request_names_the_limit_and_when_to_retry(url: str) -> None:
    """All keys of a tenant share its bucket."""
    async with client_of(url, "ada") as ada, client_of(url, "ada-view") as viewer:
        await request_times(ada, 3 * BURST)
        await request_times(viewer, BURST)
        response = await refused(viewer)
        problem = await response.json()
        assert problem["reason"] == "rate_limited"
        assert problem["errors"] == [{"field": "requests", "rule": LIMIT}]
        assert "ada" in problem["detail"] and "retry in 0." in problem["detail"]
        await asyncio.sleep(int(response.headers["Retry-After"]))
        assert not (await request_times(ada, 1))[429]


async def refused(client: aiohttp.ClientSession) -> aiohttp.ClientResponse:
    """Return the first refusal of many requests at once: single ones may come too slowly."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for response in await asyncio.gather(*(client.get("/v1/jobs") for _ in range(BURST))):
                if response.status == 429:
                    return response
                await response.read()


async def test_a_flood_of_records_waits_in_its_own_topic(tmp_path: Path) -> None:
    broker, kafka = start_broker(tmp_path)
    [port] = free_ports(1)
    limits = {"BERTH_TENANT_RATE": "10", "BERTH_TENANT_BURST": "10"}
    alone = Stack(kafka, "", "", tmp_path, await fill_access(kafka), broker)
    flood = [record_body(f"b{n}", {"name": "b", "pool": "main"}) for n in range(RECORDS)]
    await alone.put("submissions.bob", 0, *flood)
    await alone.put("submissions.ada", 0, record_body("a", {"name": "a"}))
    running, _ = start_gateway(tmp_path, kafka, "", BERTH_METRICS_PORT=str(port), **limits)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while len(entries := await alone.read("commands", 1)) < RECORDS + 1:
                await asyncio.sleep(0.5)
        tenants = [json.loads(entry.value or b"")["tenant"] for entry in entries]
        assert Counter(tenants) == {"bob": RECORDS, "ada": 1}
        assert tenants.index("ada") < RECORDS, "it waited behind the flood"
        scraped = scrape("gateway", f"127.0.0.1:{port}").series(
            "berth_submissions_held_seconds_total"
        )
        assert [labels for labels, _ in scraped] == [{"tenant": "bob"}] and scraped[0][1] > 1
    finally:
        running.stop()
        broker.stop()


async def test_an_operator_has_no_limit(url: str) -> None:
    async with client_of(url, "op") as op:
        statuses = await request_times(op, 3 * BURST)
    assert statuses[200] and statuses.keys() <= {200, 503}, "a busy database may answer 503"
