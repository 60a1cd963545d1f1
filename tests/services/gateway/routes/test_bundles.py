"""Uploads of bundles: the parts that are missing, the bounds, and jobs that name a bundle."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
from collections.abc import Iterator
from typing import Any

import pytest

from shared.contracts.bundles import PART_BYTES, Manifest
from shared.contracts.pools import RELEASE, PoolConfigured
from shared.process.connection import Connection
from tests.broker_clients import log_of
from tests.services.gateway.stack import (
    Answer,
    Stack,
    fill_access,
    ready,
    start_broker,
    start_gateway,
)
from tests.services.publisher.ledgers import Ledgers

pytestmark = pytest.mark.process
SPEC = {"name": "x", "command": ["true"], "gang": {"gpus_per_worker": 1}}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A gateway after `berth upgrade finish`, without read models."""
    folder = tmp_path_factory.mktemp("bundles")
    broker, kafka = start_broker(folder)
    ledgers = asyncio.run(_fill(kafka))
    bounds = {"BERTH_BUNDLES": str(folder / "bundles"), "BERTH_TENANT_BUNDLES_GIB": "0.01"}
    running, url = start_gateway(folder, kafka, "", **bounds)
    try:
        asyncio.run(ready(url))
        yield Stack(kafka, url, "", folder, ledgers, broker)
    finally:
        running.stop()
        broker.stop()


async def _fill(kafka: str) -> Ledgers:
    ledgers = await fill_access(kafka)
    ledgers.bus = log_of(Connection(kafka, idempotent=False))
    pools = [PoolConfigured(pool=name, partition=1, release=RELEASE) for name in ("main", "side")]
    await ledgers.append("access", 0, *pools)
    await ledgers.bus.stop()
    return ledgers


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


async def put_part(stack: Stack, body: Any, name: str = "", **options: Any) -> Answer:
    path = f"/v1/bundles/parts/{name or sha256(body)}"
    headers = {"Content-Type": "application/octet-stream"}
    return await stack.call("PUT", path, raw=body, headers=headers, **options)


async def submit(stack: Stack, bundle: str, key: str = "ada") -> Answer:
    return await stack.call("POST", "/v1/jobs", {"spec": {**SPEC, "bundle": bundle}}, key=key)


async def test_a_bundle_is_stored_when_its_parts_are_and_jobs_of_its_tenant_name_it(
    stack: Stack,
) -> None:
    body = os.urandom(100)
    document = {"parts": [sha256(body)], "size_bytes": len(body)}
    bundle = Manifest.model_validate(document).bundle
    answer = await submit(stack, bundle)
    assert answer[0] == 422 and "no such bundle" in answer[1]["errors"][0]["rule"]
    status, content, _ = await stack.call("PUT", "/v1/bundles", document)
    assert (status, content["missing"]) == (200, [sha256(body)])
    assert (await submit(stack, bundle))[0] == 422
    assert (await put_part(stack, body))[0] == 200
    status, content, _ = await stack.call("PUT", "/v1/bundles", document)
    assert content == {"bundle": bundle, "tenant": "ada", "missing": []}
    assert (await submit(stack, bundle))[0] == 202
    assert (await submit(stack, bundle, "bob"))[0] == 422
    status, content, _ = await stack.call("PUT", "/v1/bundles", document, key="bob")
    assert content["missing"] == [sha256(body)], "tenants learn nothing of each other"


async def test_an_operator_names_the_tenant_and_others_cannot(stack: Stack) -> None:
    document = {"parts": [sha256(b"x")], "size_bytes": 1}
    for key, query, status in (
        ("op", "", 422),
        ("op", "?tenant=ada", 200),
        ("ada", "?tenant=bob", 403),
        ("ada-view", "", 403),
        ("revoked", "", 401),
    ):
        answer = await stack.call("PUT", f"/v1/bundles{query}", document, key=key)
        assert answer[0] == status, (key, query, answer)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"parts": [], "size_bytes": 1}, "parts"),
        ({"parts": ["0" * 63], "size_bytes": 1}, "parts.0"),
        ({"parts": ["0" * 64] * 1025, "size_bytes": 1}, "parts"),
        ({"parts": ["0" * 64]}, "size_bytes"),
        ({"parts": ["0" * 64], "size_bytes": PART_BYTES + 1}, "size_bytes"),
        ({"parts": ["0" * 64] * 2, "size_bytes": PART_BYTES}, "size_bytes"),
        ({"parts": ["0" * 64], "size_bytes": 1, "more": 1}, "more"),
    ],
)
async def test_a_wrong_manifest_is_refused_by_field(
    stack: Stack, document: dict[str, Any], field: str
) -> None:
    status, content, _ = await stack.call("PUT", "/v1/bundles", document)
    assert status == 422 and content["errors"][0]["field"] == field, content


async def test_a_part_has_the_name_of_its_content_and_a_bound(stack: Stack) -> None:
    status, content, _ = await put_part(stack, b"x", sha256(b"y"))
    assert status == 422 and content["errors"][0]["field"] == "sha256"
    assert (await put_part(stack, b"x", "..%2F..%2Fetc"))[0] in (404, 422)
    assert (await put_part(stack, io.BytesIO(bytes(PART_BYTES + 1)), sha256(b"x")))[0] == 413


async def test_a_tenant_stores_no_more_than_its_bound(stack: Stack) -> None:
    statuses = []
    for number in range(11):
        body = bytes([number]) * PART_BYTES
        statuses.append((await put_part(stack, body, key="bob"))[0])
    assert statuses == [200] * 10 + [409]
    status, content, _ = await put_part(stack, b"small" * 100_000, key="bob")
    assert (status, content["reason"]) == (409, "bundles_full")
    assert "at most 0.01 GiB" in content["detail"]
