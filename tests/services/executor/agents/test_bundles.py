"""A node gets the bundles of its own workers, and those alone."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.executor.agents.bundles import Bundles
from services.executor.agents.lane import AgentLane
from services.executor.agents.refusal import Refused
from shared.bundle_store import BundleStore
from shared.contracts.bundles import Manifest
from shared.contracts.node_registry import EnrolledNode
from tests.services.executor.core.agents.history import allocation, running

BODY = b"part"
MANIFEST = Manifest(parts=(hashlib.sha256(BODY).hexdigest(),), size_bytes=len(BODY))


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
    bundles, node = Bundles(store), node_of(lane)
    assert (await bundles.manifest(lane, node, allocation(1))).parts == MANIFEST.parts
    part = await bundles.part(lane, node, allocation(1), 0)
    assert base64.b64decode(part.base64) == BODY
    answer = await refused(lambda: bundles.part(lane, node, allocation(1), 1))
    assert answer == (400, "malformed")
    answer = await refused(lambda: bundles.part(lane, node_of(lane, True), allocation(1), 0))
    assert answer == (403, "other_node")
    answer = await refused(lambda: bundles.manifest(lane, node, "0/99/0/0"))
    assert answer == (404, "bundle_missing")


async def test_that_of_another_tenant_is_not_there(lane: AgentLane, store: BundleStore) -> None:
    await store.put_part("somebody", BODY)
    await store.put_manifest("somebody", MANIFEST)
    answer = await refused(lambda: Bundles(store).manifest(lane, node_of(lane), allocation(1)))
    assert answer == (404, "bundle_missing")


async def test_a_store_that_is_away_is_tried_again(lane: AgentLane, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    away = Bundles(BundleStore(str(tmp_path / "file")))
    for bundles in (away, Bundles(None)):
        answer = await refused(partial(bundles.manifest, lane, node_of(lane), allocation(1)))
        assert answer == (503, "bundle_unreachable")
