"""Serves the nodes of one pool: the tasks from the fold to the last report."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from services.executor.core.virtual.injected import slowdowns_at
from services.executor.core.virtual.inventory import InventoryNode
from services.executor.core.virtual.state import ExecutorState
from services.executor.settings import ExecutorSettings
from services.executor.soft_outbox import SoftOutbox
from services.executor.virtual.heartbeats import HeartbeatSender
from services.executor.virtual.lane_reader import LaneReader, snapshots_of
from services.executor.virtual.performer import Performer
from services.executor.virtual.pools import PoolDirectory
from services.executor.virtual.reporter import Reporter
from shared.bus.clock import now_ms
from shared.bus.logs.log import Log
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import TelemetryReported
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics

TELEMETRY_S = 1.0
REGISTER_AGAIN_S = 5.0
GONE_EVERY_S = 0.02
DRAIN_S = 2.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SharedParts:
    """Parts that all pools of an executor share."""

    settings: ExecutorSettings
    connect: Callable[[], Log]
    soft: SoftOutbox
    incarnation: str
    metrics: Metrics


class PoolLane:
    """Serves the nodes of one pool until it is stopped."""

    def __init__(
        self, shared: SharedParts, pool: PoolConfigured, nodes: tuple[InventoryNode, ...]
    ) -> None:
        self._shared = shared
        self.pool = pool.pool
        self.partition = pool.partition
        own = {node.node_id: node for node in nodes if node.pool == pool.pool}
        settings = shared.settings
        self._report_log, self._ledger_log = shared.connect(), shared.connect()
        self._reporter = Reporter(
            self._report_log,
            TP("reports", self.partition),
            settings.executor_id,
            self.pool,
            settings.report_window_ms / 1000,
        )
        self.performer = Performer(
            ExecutorState(self.partition, own), self._reporter, settings.slow_nodes
        )
        self._heartbeats = HeartbeatSender(
            shared.connect(),
            TP("heartbeats", self.partition),
            settings.executor_id,
            self.performer,
            lambda: self._reporter.idle,
        )
        snapshots = snapshots_of(settings.folder, self.partition, own)
        self._reader = LaneReader(self._ledger_log, self.performer, snapshots, shared.metrics)

    def problem(self) -> str:
        """Return the reason why it is not ready, "" if it is."""
        lane = self.performer.state
        if not self._reader.acting:
            return f"{self.pool}: reading the ledger"
        if self._reader.expired:
            return f"{self.pool}: the ledger cannot be read"
        if lane.usurped:
            return f"{self.pool}: others serve {sorted(lane.usurped)}"
        refused = [n.node_id for n in lane.nodes.values() if n.backend not in lane.backends]
        if refused:
            return f"{self.pool}: the pool does not allow the backend of {refused}"
        absent = [
            name for name in lane.nodes if lane.joined.get(name) != lane.own_incarnations.get(name)
        ]
        return f"{self.pool}: not joined yet: {absent}" if absent else ""

    async def run(self, pools: PoolDirectory, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; then stop the workers and report their ends."""
        stopping = asyncio.ensure_future(_is_set(stop))
        try:
            pools.listen(self.pool, self.performer.on_pool)
            if await self._caught_up(stopping):
                await self._work_until(stopping)
        finally:
            stopping.cancel()

    async def _caught_up(self, stopping: asyncio.Task[None]) -> bool:
        shared = self._shared
        fold = asyncio.ensure_future(self._reader.catch_up(shared.incarnation))
        await asyncio.wait({stopping, fold}, return_when=asyncio.FIRST_COMPLETED)
        if not fold.done():
            fold.cancel()
            return False
        await fold
        # The reporter has not started: no registration is sent yet.
        self._heartbeats.begin()
        return True

    async def _work_until(self, stopping: asyncio.Task[None]) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in self._work()]
            await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                await self._leave()
            for task in tasks:
                task.cancel()
        await self._reader.store_snapshot()

    async def behind(self) -> dict[TP, int]:
        return await self._reader.behind()

    async def close(self) -> None:
        await self.performer.backend.close()
        await self._reader.stop()
        await self._heartbeats.stop()
        await self._report_log.stop()

    def _work(self) -> list[Coroutine[None, None, None]]:
        return [
            self._reporter.run(),
            self._reader.run(),
            self._reader.keep_lease(),
            self._reader.keep_snapshots(),
            self._heartbeats.run(),
            self._heartbeats.keep_lease(),
            _every(TELEMETRY_S, self._report_iterations),
            _every(REGISTER_AGAIN_S, self._register_again, later=True),
        ]

    async def _leave(self) -> None:
        self.performer.leave()
        try:
            async with asyncio.timeout(DRAIN_S):
                while self.performer.state.living_workers():
                    await asyncio.sleep(GONE_EVERY_S)
            async with asyncio.timeout(DRAIN_S):
                await self._reporter.drained()
        except TimeoutError:
            log.warning("left with unsent reports", extra={"pool": self.pool})

    def _register_again(self) -> None:
        """Register again, unless earlier reports still wait for the broker."""
        if self._reporter.idle:
            self.performer.register_again()

    def _inject(self) -> None:
        """Apply injected faults as they are now: a flapping node changes by itself."""
        injections = self.performer.state.injections.values()
        self.performer.backend.inject(slowdowns_at(injections, self._reader.now_ms()))

    def _report_iterations(self) -> None:
        self._inject()
        times = tuple(self.performer.backend.iterations())
        if times:
            executor_id = self._shared.settings.executor_id
            report = TelemetryReported(executor_id=executor_id, at=now_ms(), times=times)
            self._shared.soft.post(self.partition, report)


async def _is_set(stop: asyncio.Event) -> None:
    await stop.wait()


async def _every(period_s: float, act: Callable[[], None], later: bool = False) -> None:
    if later:
        await asyncio.sleep(period_s)
    while True:
        act()
        await asyncio.sleep(period_s)
