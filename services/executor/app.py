"""Wiring of an executor: its pools, its processes, the soft topics, and its shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from uuid import uuid4

from services.executor.core.effects import WorkerOutcome
from services.executor.core.inventory import InventoryNode
from services.executor.pool_lane import PoolLane, SharedParts
from services.executor.pools import PoolWatch
from services.executor.process.backend import ProcessBackend
from services.executor.process.journal import Journal
from services.executor.process.launch import LaunchSettings, unreachable
from services.executor.process.orphans import reap
from services.executor.settings import ExecutorSettings
from services.executor.soft import SoftOutbox
from shared.bus.log import Log
from shared.bus.probe import probe_lag
from shared.bus.tail import LedgerTail
from shared.contracts.reports import LogLines
from shared.ledger.partition import TP
from shared.settings import BadSettings
from shared.telemetry.metrics import Metrics

PRINT_S = 0.5
DRAIN_S = 2.0


class Executor:
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
        self._soft = SoftOutbox(self._soft_log, settings.executor_id)
        self._lanes: dict[int, PoolLane] = {}
        self._pools = PoolWatch(LedgerTail(connect(), {"access": [0]}))
        self._wanted = sorted({node.pool for node in nodes})

    def health(self) -> dict[str, object]:
        """Return readiness: every pool is known and read, and every node has joined."""
        missing = set(self._wanted) - {lane.pool for lane in self._lanes.values()}
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
        """Serve until `stop` is set; a failure of any part ends all, and the next start reaps."""
        machine = await self._prepare()
        try:
            await self._serve_all(machine, stop)
        finally:
            if machine.processes is not None:
                await machine.processes.close()
            if machine.journal is not None:
                machine.journal.close()
            for lane in self._lanes.values():
                await lane.close()
            await self._pools.close()
            await self._soft_log.stop()

    async def _serve_all(self, machine: SharedParts, stop: asyncio.Event) -> None:
        await self._pools.start()
        async with asyncio.TaskGroup() as group:
            beside = (self._soft.run(), self._pools.run(), probe_lag(self.behind, self._metrics))
            background = [group.create_task(work) for work in beside]
            if machine.processes is not None:
                background.append(group.create_task(_print_all(machine.processes)))
            serving = [group.create_task(self._serve(machine, pool, stop)) for pool in self._wanted]
            await asyncio.wait(serving)
            await _at_most(DRAIN_S, self._soft.drained())
            for task in background:
                task.cancel()

    async def _serve(self, machine: SharedParts, pool: str, stop: asyncio.Event) -> None:
        stopping = asyncio.ensure_future(stop.wait())
        pool_task = asyncio.ensure_future(self._pools.wait_for(pool))
        try:
            await asyncio.wait({stopping, pool_task}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                return
            lane = PoolLane(machine, pool_task.result(), self._nodes)
            self._lanes[lane.partition] = lane
            await lane.run(self._pools, stop)
        finally:
            stopping.cancel()
            pool_task.cancel()

    async def _prepare(self) -> SharedParts:
        settings = self._settings
        journal, processes, ends = None, None, {}
        if any(node.backend == "process" for node in self._nodes):
            place = _place(settings)
            journal = Journal(settings.folder / "journal")
            ends = await asyncio.to_thread(reap, journal)
            processes = ProcessBackend(place, journal, self._on_outcome, self._on_lines)
        return SharedParts(
            settings,
            self._connect,
            self._soft,
            uuid4().hex,
            processes,
            journal,
            ends,
            self._metrics,
        )

    def _on_outcome(self, outcome: WorkerOutcome) -> None:
        self._lanes[_lane_of(outcome.allocation_id)].agent.on_outcome(outcome)

    def _on_lines(self, allocation_id: str, lines: LogLines) -> None:
        self._soft.post(_lane_of(allocation_id), lines, lines.tenant)


def _lane_of(allocation_id: str) -> int:
    return int(allocation_id.partition("/")[0])


def _place(settings: ExecutorSettings) -> LaunchSettings:
    work = settings.work or settings.folder / "work"
    place = LaunchSettings(
        work.resolve(),
        settings.worker_path,
        settings.secrets,
        settings.uid_first,
        settings.uid_count,
    )
    work.mkdir(parents=True, exist_ok=True)
    closed = unreachable(work) if place.own_uids else None
    if closed is not None:
        raise BadSettings(
            f"BERTH_WORK: workers with a uid of their own cannot enter {closed}; "
            "choose another folder, or run workers as root with BERTH_UID_FIRST=0"
        )
    return place


async def _print_all(processes: ProcessBackend) -> None:
    while True:
        await asyncio.sleep(PRINT_S)
        processes.print_new()


async def _at_most(wait_s: float, work: Coroutine[None, None, None]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await work
