"""The share of an executor that one node may use. What is above it waits; a flood is refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from time import monotonic_ns
from weakref import WeakValueDictionary

from services.executor.agents.refusal import Refused, limited
from shared.http.rate import NS, Rate, TokenBuckets

HEARTBEATS = Rate(10, 100)
REQUESTS = Rate(100, 1000)
"""All requests but heartbeats: a node that starts a job each 100 ms sends about 50 a second."""
BYTES = Rate(1024 * 1024, 8 * 1024 * 1024)
REPORTS = Rate(200, 2000)
LINES = Rate(2000, 20_000)
PART_BYTES_SENT = Rate(64 * 1024 * 1024, 256 * 1024 * 1024)
"""Bytes of parts of bundles as they are sent, in base64: a bundle of 1 GiB takes some 20 s."""
NODE_PARTS = 2
PARTS = 8
"""Parts that are read and sent at the same time, to one node and to all."""
LONGEST_WAIT_S = 3.0
"""Longer waits are the client's: it would take the request for lost."""
MOST_WAITING = 8
"""Waiting requests of a node; an agent has one of each kind in flight."""


class ResourceLimit:
    """One bucket of one resource per node."""

    def __init__(self, resource: str, rate: Rate) -> None:
        self._resource = resource
        self._buckets = TokenBuckets(rate)
        self._waiting: Counter[str] = Counter()

    async def take(self, node_id: str, count: int = 1) -> None:
        """Count a message, once there is room for one: the wait for a large one follows it.

        Raises a 429 instead of a long wait, and if many requests of the node wait already.
        """
        while wait_ns := self._buckets.wait_ns(node_id, monotonic_ns()):
            await self._wait(node_id, wait_ns / NS)
        self.spend(node_id, count)

    def spend(self, node_id: str, count: int) -> None:
        """Count what was received already; the next `take` waits for it."""
        self._buckets.spend(node_id, monotonic_ns(), count)

    async def _wait(self, node_id: str, wait_s: float) -> None:
        if wait_s > LONGEST_WAIT_S or self._waiting[node_id] >= MOST_WAITING:
            rate = self._buckets.rate
            shown = f"{rate.per_s:g} a second, {rate.burst} at once, per node"
            raise limited(self._resource, shown, wait_s)
        self._waiting[node_id] += 1
        try:
            await asyncio.sleep(wait_s)
        finally:
            self._waiting[node_id] -= 1
            if not self._waiting[node_id]:
                del self._waiting[node_id]


class Places:
    """Requests that are answered at the same time, of one node and of all."""

    def __init__(self, resource: str, of_node: int, total: int) -> None:
        self._resource = resource
        self._of_node, self._of_all = of_node, total
        self._total = asyncio.Semaphore(total)
        self._nodes: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._waiting: Counter[str] = Counter()

    @asynccontextmanager
    async def taken(self, node_id: str) -> AsyncIterator[None]:
        """Hold a place; raises a 429 instead of a long wait, and if many requests wait already."""
        own = self._nodes.setdefault(node_id, asyncio.Semaphore(self._of_node))
        if self._waiting[node_id] >= MOST_WAITING:
            raise self._refused()
        async with AsyncExitStack() as held:
            self._waiting[node_id] += 1
            try:
                async with asyncio.timeout(LONGEST_WAIT_S):
                    await held.enter_async_context(own)
                    await held.enter_async_context(self._total)
            except TimeoutError:
                raise self._refused() from None
            finally:
                self._waiting[node_id] -= 1
                if not self._waiting[node_id]:
                    del self._waiting[node_id]
            yield

    def _refused(self) -> Refused:
        shown = f"{self._of_node} at once per node, {self._of_all} of all nodes"
        return limited(self._resource, shown, 1)


class NodeLimits:
    """The limits of an executor. A client that keeps to the protocol waits, and is not refused."""

    def __init__(self) -> None:
        self.heartbeats = ResourceLimit("heartbeats", HEARTBEATS)
        self.requests = ResourceLimit("requests", REQUESTS)
        self.bytes = ResourceLimit("bytes", BYTES)
        self.reports = ResourceLimit("reports", REPORTS)
        self.lines = ResourceLimit("lines", LINES)
        self.parts = Places("parts of bundles", NODE_PARTS, PARTS)
        self.part_bytes = ResourceLimit("bytes of bundles", PART_BYTES_SENT)
