"""A node gets the bundles of its own workers, and those alone."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.executor.agents import bundles, http, limits
from services.executor.agents.bundles import Bundles
from services.executor.agents.lane import AgentLane
from services.executor.agents.refusal import Refused
from shared.bundles.bundle_store import BundleStore
from shared.contracts.agents import BundlePart
from shared.contracts.bundles import PART_BYTES, Manifest
from shared.contracts.node_registry import EnrolledNode
from shared.http.rate import Rate
from tests.patience import PATIENCE_S
from tests.services.executor.agents.installation import Agent, Installation
from tests.services.executor.core.agents.history import (
    ENQUEUED,
    PLACED,
    allocation,
    joined,
    running,
)
from tests.shared.bundles.test_bundle_store import LONG, age

BODY = b"part"
MANIFEST = Manifest(parts=(hashlib.sha256(BODY).hexdigest(),), size_bytes=len(BODY))
REQUESTED = 12
"""Parts that are requested by one connection."""


@pytest.fixture
def lane() -> AgentLane:
    """A lane whose first worker starts with a bundle."""
    state = running().state
    worker = state.workers[allocation(1)]
    worker.launch = worker.launch.model_copy(update={"bundle": MANIFEST.bundle})
    return cast("AgentLane", SimpleNamespace(state=state))


def node_of(lane: AgentLane, other: bool = False) -> EnrolledNode:
    node_id = "another" if other else lane.state.workers[allocation(1)].node_id
    return cast("EnrolledNode", SimpleNamespace(node_id=node_id))


@pytest.fixture
def store(tmp_path: Path) -> BundleStore:
    return BundleStore(str(tmp_path / "bundles"))


async def refused(request: Callable[[], Any]) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        await request()
    return caught.value.status, caught.value.problem.reason


async def test_manifest_and_parts_of_its_own_worker(lane: AgentLane, store: BundleStore) -> None:
    tenant = lane.state.workers[allocation(1)].launch.tenant
    await store.put_part(tenant, BODY)
    await store.put_manifest(tenant, MANIFEST)
    known, node = Bundles(store), node_of(lane)
    assert (await known.manifest(lane, node, allocation(1))).parts == MANIFEST.parts
    part = await known.part(lane, node, allocation(1), 0)
    assert base64.b64decode(BundlePart.model_validate_json(part).base64) == BODY
    answer = await refused(lambda: known.part(lane, node, allocation(1), 1))
    assert answer == (400, "malformed")
    answer = await refused(lambda: known.part(lane, node_of(lane, True), allocation(1), 0))
    assert answer == (403, "other_node")
    answer = await refused(lambda: known.manifest(lane, node, "0/99/0/0"))
    assert answer == (404, "bundle_missing")


async def test_a_manifest_is_read_again_after_a_day_which_renews_it(
    lane: AgentLane, store: BundleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = lane.state.workers[allocation(1)].launch.tenant
    await store.put_part(tenant, BODY)
    await store.put_manifest(tenant, MANIFEST)
    read, node = Bundles(store), node_of(lane)
    await read.manifest(lane, node, allocation(1))
    age(tmp_path / "bundles", LONG)
    await read.manifest(lane, node, allocation(1))
    assert await store.remove_unused(timedelta(days=2)) == 0
    stored = await store.stored(tenant, MANIFEST.bundle)
    assert stored is not None and stored.is_old, "it is known"
    monkeypatch.setattr(bundles, "monotonic", lambda: time.monotonic() + bundles.KNOWN_S)
    await read.manifest(lane, node, allocation(1))
    stored = await store.stored(tenant, MANIFEST.bundle)
    assert stored is not None and not stored.is_old


async def test_that_of_another_tenant_is_not_there(lane: AgentLane, store: BundleStore) -> None:
    await store.put_part("somebody", BODY)
    await store.put_manifest("somebody", MANIFEST)
    answer = await refused(lambda: Bundles(store).manifest(lane, node_of(lane), allocation(1)))
    assert answer == (404, "bundle_missing")


async def test_a_store_that_is_away_is_tried_again(lane: AgentLane, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    away = Bundles(BundleStore(str(tmp_path / "file")))
    for read in (away, Bundles(None)):
        answer = await refused(partial(read.manifest, lane, node_of(lane), allocation(1)))
        assert answer == (503, "bundle_unreachable")


async def placed(site: Installation, folder: Path, body: bytes) -> str:
    """Store a bundle of one part; return the allocation on n1 of a gang that starts with it."""
    store, sha256 = BundleStore(str(folder)), hashlib.sha256(body).hexdigest()
    manifest = Manifest(parts=(sha256,), size_bytes=len(body))
    await store.put_part(ENQUEUED.tenant, body)
    await store.put_manifest(ENQUEUED.tenant, manifest)
    spec = ENQUEUED.spec.model_copy(update={"bundle": manifest.bundle})
    enqueued = ENQUEUED.model_copy(update={"spec": spec})
    site.placement.write([joined("n1"), joined("n2"), enqueued])
    return f"{site.placement.write([PLACED])}/1"


@pytest.fixture
def site(tmp_path: Path) -> Installation:
    return Installation(tmp_path, bundles=str(tmp_path / "bundles"))


def part_request(agent: Agent, allocation_id: str) -> dict[str, object]:
    return {"session_id": agent.session_id, "allocation_id": allocation_id, "index": 0}


async def test_a_node_that_reads_no_part_has_few_in_memory(
    site: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "WRITE_S", 10 * PATIENCE_S)
    monkeypatch.setattr(limits, "LONGEST_WAIT_S", 10 * PATIENCE_S)
    allocation_id = await placed(site, tmp_path / "bundles", os.urandom(PART_BYTES))
    async with site.serving() as server, site.agent("n1") as agent:
        await agent.hello()
        sent = [await unread_parts(site.port, agent, allocation_id) for _ in range(6)]
        places = server._requests.limits.parts
        async with asyncio.timeout(PATIENCE_S):
            while (taken := limits.PARTS - places._total._value, places._waiting["n1"]) != (2, 4):
                assert taken <= limits.NODE_PARTS
                await asyncio.sleep(0.01)
        assert await agent.send_heartbeat(1) == 204
        for _, writer in sent:
            writer.transport.abort()
        status, answer = await agent.post("part", part_request(agent, allocation_id))
        assert status == 200 and len(base64.b64decode(answer["base64"])) == PART_BYTES


async def test_a_connection_that_takes_no_part_is_dropped(
    site: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "WRITE_S", 0.2)
    allocation_id = await placed(site, tmp_path / "bundles", os.urandom(PART_BYTES))
    async with site.serving() as server, site.agent("n1") as agent:
        await agent.hello()
        reader, writer = await unread_parts(site.port, agent, allocation_id)
        async with asyncio.timeout(PATIENCE_S):
            while not writer.is_closing():
                writer.write(b" ")
                await asyncio.sleep(0.01)
            assert await rest_of(reader) < REQUESTED * PART_BYTES
            while server._requests.limits.parts._total._value < limits.PARTS:
                await asyncio.sleep(0.01)
        writer.close()


async def unread_parts(
    port: int, agent: Agent, allocation_id: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send requests for more than the kernel buffers, by a connection that takes a few KiB."""
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    own.setblocking(False)
    await asyncio.get_running_loop().sock_connect(own, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=own, limit=1024)
    body = json.dumps(part_request(agent, allocation_id))
    request = (
        f"POST /agent/v1/part HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: {agent.headers['Authorization']}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    )
    writer.write(REQUESTED * request.encode())
    return reader, writer


async def rest_of(reader: asyncio.StreamReader) -> int:
    """Return the bytes that a connection gets until it ends."""
    count = 0
    try:
        while chunk := await reader.read(65536):
            count += len(chunk)
    except ConnectionError:
        pass
    return count


async def test_bytes_of_parts_are_limited_per_node(
    site: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PART_BYTES_SENT", Rate(1, 2048))
    allocation_id = await placed(site, tmp_path / "bundles", os.urandom(1024))
    async with site.serving(), site.agent("n1") as agent:
        await agent.hello()
        answers = [await agent.post("part", part_request(agent, allocation_id)) for _ in range(4)]
        assert [status for status, _ in answers] == [200, 200, 429, 429]
        assert answers[3][1]["detail"].startswith("bytes of bundles: 1 a second")
