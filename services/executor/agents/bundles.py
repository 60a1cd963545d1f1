"""Gives a node the bundles of its own workers, and no others."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import OrderedDict
from time import monotonic

from services.executor.agents.lane import AgentLane
from services.executor.agents.output import other_node
from services.executor.agents.refusal import Refused, unavailable
from shared.bundles.bundle_store import BundleStore
from shared.contracts.agents import BundleManifest, BundlePart
from shared.contracts.bundles import Manifest
from shared.contracts.node_registry import EnrolledNode
from shared.objects.objects import StoreUnreachable

KNOWN = 256
"""Manifests that are kept: a node requests a bundle part by part."""
KNOWN_S = 86400.0
"""Time for which one is kept: the store renews what is read."""

log = logging.getLogger(__name__)


class Bundles:
    """Reads bundles from the store, which may be absent; raises Refused."""

    def __init__(self, store: BundleStore | None) -> None:
        self._store = store
        self._known: OrderedDict[tuple[str, str], tuple[float, Manifest]] = OrderedDict()

    async def manifest(
        self, lane: AgentLane, node: EnrolledNode, allocation_id: str
    ) -> BundleManifest:
        """Return the manifest of the bundle of a worker."""
        tenant, bundle = _bundle_of(lane, node, allocation_id)
        manifest = await self._manifest(tenant, bundle)
        return BundleManifest(parts=manifest.parts, size_bytes=manifest.size_bytes)

    async def part(
        self, lane: AgentLane, node: EnrolledNode, allocation_id: str, index: int
    ) -> bytes:
        """Return one part of the bundle of a worker: a BundlePart in JSON."""
        tenant, bundle = _bundle_of(lane, node, allocation_id)
        manifest = await self._manifest(tenant, bundle)
        if index >= len(manifest.parts):
            rule = f"at most {len(manifest.parts) - 1} is allowed"
            raise Refused(400, "malformed", f"index: {index}; {rule}")
        try:
            body = await self._opened().part(tenant, manifest.parts[index])
        except StoreUnreachable as error:
            raise _unreachable(error) from None
        if body is None:
            raise _missing(bundle)
        # Milliseconds, in which the loop serves heartbeats.
        return await asyncio.to_thread(_encoded, body)

    async def _manifest(self, tenant: str, bundle: str) -> Manifest:
        until_s, known = self._known.get((tenant, bundle), (0.0, None))
        if known is None or monotonic() >= until_s:
            try:
                known = await self._opened().manifest(tenant, bundle)
            except StoreUnreachable as error:
                raise _unreachable(error) from None
            if known is None:
                raise _missing(bundle)
            self._known[tenant, bundle] = (monotonic() + KNOWN_S, known)
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)
        return known

    def _opened(self) -> BundleStore:
        if self._store is None:
            raise unavailable("bundle_unreachable", "BERTH_BUNDLES of the executor is not set")
        return self._store


def _bundle_of(lane: AgentLane, node: EnrolledNode, allocation_id: str) -> tuple[str, str]:
    """Return tenant and bundle of a worker of the node. Raises Refused."""
    worker = lane.state.workers.get(allocation_id)
    if worker is not None and worker.node_id != node.node_id:
        raise other_node(allocation_id)
    if worker is None or not worker.launch.bundle:
        detail = f"allocation_id: {allocation_id!r}; no worker of this node with a bundle"
        raise Refused(404, "bundle_missing", detail)
    return worker.launch.tenant, worker.launch.bundle


def _encoded(body: bytes) -> bytes:
    return BundlePart(base64=base64.b64encode(body).decode()).model_dump_json().encode()


def _missing(bundle: str) -> Refused:
    return Refused(404, "bundle_missing", f"{bundle}: not stored, or not any more")


def _unreachable(error: StoreUnreachable) -> Refused:
    # Its place is of no concern to the node.
    log.warning("bundles cannot be read", extra={"reason": str(error)})
    return unavailable("bundle_unreachable", "the executor cannot read its bundles now")
