"""Wiring of an executor with an inventory: its pools, the soft topics, and its shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from uuid import uuid4

from services.executor.core.virtual.inventory import InventoryNode
from services.executor.settings import ExecutorSettings
from services.executor.soft_outbox import SoftOutbox
from services.executor.virtual.pool_lane import PoolLane, SharedParts
from services.executor.virtual.pools import PoolDirectory
from shared.bus.hosting.probe import probe_lag
from shared.bus.logs.log import Log
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics

DRAIN_S = 2.0


class VirtualServer:
    """Serves `nodes` until `stop` is set; `connect` makes a client of the log."""

    def __init__(
        self,
        settings: ExecutorSettings,
        nodes: tuple[InventoryNode, ...],
        connect: Callable[[], Log],
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._nodes = nodes
        self._connect = connect
        self._soft_log = connect()
        self._soft = SoftOutbox(self._soft_log, settings.executor_id, metrics)
        self._lanes: dict[int, PoolLane] = {}
        self._pools = PoolDirectory(connect)
        self._names = sorted({node.pool for node in nodes})

    def health(self) -> dict[str, object]:
        """Return readiness: every pool is known and read, and every node has joined."""
        missing = set(self._names) - {lane.pool for lane in self._lanes.values()}
        if missing:
            return {"ready": False, "reason": f"pools unknown yet: {sorted(missing)}"}
        reasons = [reason for lane in self._lanes.values() if (reason := lane.problem())]
        return {"ready": False, "reason": "; ".join(reasons)} if reasons else {"ready": True}

    async def behind(self) -> dict[TP, int]:
        """Request from the broker how many records of each ledger are not read yet."""
        lag = await self._pools.behind()
        for lane in list(self._lanes.values()):
            lag |= await lane.behind()
        return lag

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; a failure of any part ends all."""
        shared = SharedParts(self._settings, self._connect, self._soft, uuid4().hex, self._metrics)
        try:
            await self._serve_all(shared, stop)
        finally:
            for lane in self._lanes.values():
                await lane.close()
            await self._soft_log.stop()

    async def _serve_all(self, shared: SharedParts, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            beside = (self._soft.run(), self._pools.run(), probe_lag(self.behind, self._metrics))
            background = [group.create_task(work) for work in beside]
            serving = [group.create_task(self._serve(shared, pool, stop)) for pool in self._names]
            await asyncio.wait(serving)
            await _at_most(DRAIN_S, self._soft.drained())
            for task in background:
                task.cancel()

    async def _serve(self, shared: SharedParts, pool: str, stop: asyncio.Event) -> None:
        stopping = asyncio.ensure_future(stop.wait())
        pool_task = asyncio.ensure_future(self._pools.wait_for(pool))
        try:
            await asyncio.wait({stopping, pool_task}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                return
            lane = PoolLane(shared, pool_task.result(), self._nodes)
            self._lanes[lane.partition] = lane
            await lane.run(self._pools, stop)
        finally:
            stopping.cancel()
            pool_task.cancel()


async def _at_most(wait_s: float, work: Coroutine[None, None, None]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await work
