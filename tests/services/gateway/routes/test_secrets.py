"""Secrets by REST: a real gateway with the real access service; hostile names, keys and bodies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import aiohttp
import pytest

from services.gateway.sealing import CHANGES
from shared.contracts.identity import derive_command_id
from shared.contracts.pools import RELEASE, PoolConfigured
from shared.ledger.partition import TP
from shared.process.connection import Connection
from shared.secrets.secret_keys import FILE, add_key
from tests.broker_clients import log_of
from tests.patience import PATIENCE_S
from tests.services.gateway.kafka.test_ingress import record_body, until
from tests.services.gateway.stack import (
    KEYS,
    Stack,
    fill_access,
    ready,
    start_access,
    start_broker,
    start_gateway,
)

pytestmark = pytest.mark.process
MARKER = "marker-5e1f"


class Site(NamedTuple):
    """Addresses of the gateways and the broker, and the folder of logs and keys."""

    urls: tuple[str, str]
    kafka: str
    folder: Any

    async def call(
        self, method: str, path: str, body: object = None, *, key: str = "ada", gateway: int = 0
    ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {KEYS[key]}"}
        async with (
            asyncio.timeout(PATIENCE_S),
            aiohttp.ClientSession(self.urls[gateway], headers=headers) as client,
        ):
            while True:
                async with client.request(method, path, json=body) as answer:
                    if answer.status != 503:
                        return answer.status, await answer.json()
                await asyncio.sleep(0.1)

    async def set(
        self, name: str, value: str, key: str = "ada", query: str = "", gateway: int = 0
    ) -> tuple[int, Any]:
        path = f"/v1/secrets/{name}{query}"
        return await self.call("PUT", path, {"value": value}, key=key, gateway=gateway)

    async def listed(self, key: str = "ada", query: str = "") -> dict[str, Any]:
        status, page = await self.call("GET", f"/v1/secrets{query}", key=key)
        assert status == 200, page
        return {row["id"]: row for row in page["items"]}

    async def submit(self, secret: str, key: str = "ada", **fields: Any) -> tuple[int, Any]:
        spec = {"name": "x", "gang": {"gpus_per_worker": 1}, "env": {"PASS": f"secret://{secret}"}}
        return await self.call("POST", "/v1/jobs", {"spec": spec, **fields}, key=key)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("secrets")
    broker, kafka = start_broker(folder)
    asyncio.run(_fill(kafka))
    access = start_access(folder, kafka)
    gateways = [start_gateway(folder, kafka, "") for _ in range(2)]
    urls = (gateways[0][1], gateways[1][1])
    try:
        for url in urls:
            asyncio.run(ready(url))
        yield Site(urls, kafka, folder)
    finally:
        for running in (*(gateway for gateway, _ in gateways), access, broker):
            running.stop()


async def _fill(kafka: str) -> None:
    ledgers = await fill_access(kafka)
    ledgers.bus = log_of(Connection(kafka, idempotent=False))
    pools = [PoolConfigured(pool=name, partition=1, release=RELEASE) for name in ("main", "side")]
    await ledgers.append("access", 0, *pools)
    await ledgers.bus.stop()


async def test_a_secret_is_set_listed_replaced_and_deleted(site: Site) -> None:
    status, receipt = await site.set("db", f"{MARKER}-one\nline")
    assert status == 202, receipt
    assert (receipt["tenant"], receipt["name"]) == ("ada", "db") and MARKER not in str(receipt)
    row = (await site.listed())["ada/db"]
    assert (row["version"], row["set_by"]) == (receipt["version"], "key:ada-key")
    assert row["set_at"] > 1_700_000_000_000 and MARKER not in str(row)
    same = (await site.set("db", f"{MARKER}-one\nline"))[1]
    assert same["version"] == receipt["version"]
    status, newer = await site.set("db", f"{MARKER}-two")
    assert (status, newer["version"]) == (202, receipt["version"] + 1)
    assert (await site.call("DELETE", "/v1/secrets/db"))[0] == 202
    assert "ada/db" not in await site.listed()
    assert (await site.call("DELETE", "/v1/secrets/db"))[0] == 404


async def test_an_operator_names_the_tenant_and_a_tenant_is_itself(site: Site) -> None:
    status, problem = await site.set("api", "x1", "op")
    assert (status, problem["errors"][0]["field"]) == (422, "tenant")
    assert (await site.set("api", "x1", "op", "?tenant=bob"))[0] == 202
    assert (await site.set("api", "x1", "op", "?tenant=eve"))[0] == 403
    for method, path in (
        ("PUT", "/v1/secrets/api?tenant=bob"),
        ("DELETE", "/v1/secrets/api?tenant=bob"),
        ("GET", "/v1/secrets?tenant=bob"),
    ):
        status, problem = await site.call(method, path, {"value": "mine"})
        assert (status, problem["reason"]) == (403, "tenant_mismatch"), path
    assert (await site.call("DELETE", "/v1/secrets/api"))[0] == 404
    assert set(await site.listed("bob")) == {"bob/api"} <= set(await site.listed("op"))
    assert set(await site.listed("op", "?tenant=bob")) == {"bob/api"}
    assert "bob/api" not in await site.listed()
    assert (await site.call("GET", "/v1/secrets?tenant=eve", key="op"))[0] == 422


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"value": "x" * (32 * 1024 + 1)}, 422),
        ({"value": MARKER + "ä" * (16 * 1024)}, 422),
        ({"value": "x" * 300_000}, 413),
        ({"value": f"{MARKER}\0"}, 422),
        ({"value": ""}, 422),
        ({"value": [MARKER]}, 422),
        ({"value": 7}, 422),
        ({"value": "x1", MARKER: 1}, 422),
        ({}, 422),
    ],
)
async def test_a_value_that_is_none_is_refused_and_not_repeated(
    site: Site, body: dict[str, Any], status: int
) -> None:
    answered, problem = await site.call("PUT", "/v1/secrets/bad", body)
    assert answered == status
    shown = json.dumps(problem).replace(f'"field": "{MARKER}"', "")
    assert MARKER not in shown and "xxxx" not in shown


@pytest.mark.parametrize("name", ["..%2Fbob%2Fapi", ".hidden", "a%20b", "x" * 129])
async def test_what_is_no_name_is_refused(site: Site, name: str) -> None:
    assert (await site.set(name, "x1"))[0] in (404, 422)


async def test_the_largest_value_is_stored(site: Site) -> None:
    assert (await site.set("large", "\1" * (32 * 1024)))[0] == 202


async def test_a_job_gets_no_secret_that_its_tenant_lacks(site: Site) -> None:
    assert (await site.set("of-bob", "x1", "bob"))[0] == 202
    for secret in ("of-bob", "../bob/of-bob", "absent", ""):
        status, problem = await site.submit(secret)
        assert (status, problem["errors"][0]["field"]) == (422, "env.PASS"), problem
        assert problem["errors"][0]["value"] == f"secret://{secret}"
    assert (await site.submit("of-bob", tenant="bob"))[0] == 403
    assert (await site.submit("of-bob", "op", tenant="ada"))[0] == 422
    assert (await site.submit("of-bob", "op", tenant="bob"))[0] == 202
    assert (await site.submit("of-bob", "bob"))[0] == 202


async def test_a_secret_that_another_gateway_set_a_moment_ago_is_known(site: Site) -> None:
    for number in range(5):
        assert (await site.set(f"fresh-{number}", "x1", gateway=1))[0] == 202
        assert (await site.submit(f"fresh-{number}"))[0] == 202


async def test_a_job_by_event_gets_no_secret_that_its_tenant_lacks(site: Site) -> None:
    nothing = cast("Any", None)
    stack = Stack(site.kafka, site.urls[0], "", site.folder, nothing, nothing)
    assert (await site.set("by-event", "x1"))[0] == 202
    bodies = [
        {"name": "x", "gang": {"gpus_per_worker": 1}, "env": {"PASS": f"secret://{name}"}}
        for name in ("by-event", "of-bob", "../bob/of-bob")
    ]
    records = [record_body(f"e{number}", body) for number, body in enumerate(bodies)]
    offsets = await stack.put("submissions.ada", 0, *records)
    taken, *refused = [
        await until(stack, derive_command_id("submissions.ada", 0, offset)) for offset in offsets
    ]
    assert taken["type"] == "job.submit.v1"
    assert {envelope["type"] for envelope in refused} == {"submission.reject.v1"}
    assert all("env.PASS = 'secret://" in envelope["data"]["reason"] for envelope in refused)


async def test_two_gateways_that_set_secrets_of_one_tenant_both_do(site: Site) -> None:
    answers = await asyncio.gather(
        *(site.set(f"both-{number}", "x1", gateway=number % 2) for number in range(8))
    )
    assert [status for status, _ in answers] == [202] * 8, answers
    versions = {receipt["version"] for _, receipt in answers}
    assert len(versions) == 8


async def test_a_rotation_brings_all_under_the_first_key(site: Site) -> None:
    assert (await site.set("kept", f"{MARKER}-kept"))[0] == 202
    old = {row["key_id"] for row in (await site.listed("op")).values()}
    first = add_key(site.folder / FILE)
    status, receipt = await site.call("POST", "/v1/secrets/rotate", key="op")
    rows = (await site.listed("op")).values()
    assert (status, receipt["key_id"], receipt["left"]) == (200, first, 0), receipt
    assert receipt["rewrapped"] == len(rows) and receipt["lost"] == [] and first not in old
    assert {row["key_id"] for row in rows} == {first}
    again = (await site.call("POST", "/v1/secrets/rotate", key="op"))[1]
    assert again["rewrapped"] == 0
    version = (await site.listed())["ada/kept"]["version"]
    assert (await site.set("kept", f"{MARKER}-kept"))[1]["version"] == version


async def test_no_record_or_log_holds_a_value(site: Site) -> None:
    assert (await site.set("seen", f"{MARKER}-seen"))[0] == 202
    bus = log_of(Connection(site.kafka, idempotent=False))
    await bus.start()
    feed = await bus.feed({TP("access", 0): 0, TP("access.commands", 0): 0}, lossy=True)
    raw = b""
    while polled := await feed.poll(0.7, 5000):
        raw += b"".join(e.value or b"" for entries in polled.values() for e in entries)
    await feed.close()
    await bus.stop()
    assert b"secret.stored.v1" in raw and b"secret.store.v1" in raw
    assert MARKER.encode() not in raw
    for path in site.folder.rglob("*"):
        if path.is_file():
            assert MARKER.encode() not in path.read_bytes(), path


async def test_a_tenant_that_goes_on_changing_secrets_is_slowed_down(site: Site) -> None:
    refused: dict[str, Any] = {}
    headers = {"Authorization": f"Bearer {KEYS['bob']}"}
    async with aiohttp.ClientSession(site.urls[0], headers=headers) as client:
        for _ in range(CHANGES.burst + 1):
            async with client.delete("/v1/secrets/absent") as answer:
                if answer.status == 429:
                    refused = await answer.json()
                    assert 1 <= int(answer.headers["Retry-After"]) <= 1 / CHANGES.per_s
                    break
                assert answer.status == 404
    assert refused["reason"] == "rate_limited"
    assert refused["detail"].startswith("changes of secrets of tenant bob: at most 0.1 requests")
    assert (await site.set("db", "x1", "bob"))[0] == 429
    assert (await site.listed("bob")).keys() >= {"bob/of-bob"}
    assert (await site.set("db", "x1"))[0] == 202
    assert (await site.set("db", "x1", "op", "?tenant=bob"))[0] == 202
