"""Wiring of an executor of an engine: its pool, the soft topics, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from services.executor.agents.lane import AgentLane
from services.executor.engines.engine import Engine
from services.executor.engines.pool import EnginePool
from services.executor.settings import ExecutorSettings
from services.executor.soft_outbox import SoftOutbox
from services.executor.virtual.pools import PoolDirectory
from shared.bus.hosting.probe import probe_lag
from shared.bus.logs.log import Log
from shared.contracts.registry import AccessView
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics

Beside: TypeAlias = Callable[[AgentLane, Callable[[], AccessView]], Awaitable[None]]


class EngineServer:
    """Serves one pool by an engine until `stop` is set; `connect` makes a client of the log."""

    def __init__(
        self,
        settings: ExecutorSettings,
        pool: str,
        engine: Engine,
        connect: Callable[[], Log],
        metrics: Metrics,
        beside: Beside | None = None,
        at_once: int = 1,
    ) -> None:
        """`beside` is what goes on with the pool's lane while it is served, until cancelled;
        `at_once` is the number of gangs that are acted on at a time."""
        self._at_once = at_once
        self._beside = beside
        self._settings = settings
        self._name = pool
        self._engine = engine
        self._connect = connect
        self._metrics = metrics
        self._soft_log = connect()
        self._soft = SoftOutbox(self._soft_log, settings.executor_id, metrics)
        self._directory = PoolDirectory(connect)
        self._pool: EnginePool | None = None

    def health(self) -> dict[str, object]:
        """Return readiness: the pool exists, its ledger is read, and the engine answers.

        Until the pool is made there is nothing to serve, which may last.
        """
        if self._pool is None:
            is_read = self._directory.caught_up.is_set()
            return {"ready": is_read, "reason": f"no pool {self._name} with {self._backend} yet"}
        problem = self._pool.problem()
        return {"ready": False, "reason": problem} if problem else {"ready": True}

    @property
    def _backend(self) -> str:
        return self._engine.backend

    async def behind(self) -> dict[TP, int]:
        """Request from the broker how many records of each ledger are not read yet."""
        lag = await self._directory.behind()
        if self._pool is not None and self._pool.lane.caught_up.is_set():
            lag |= await self._pool.lane.behind()
        return lag

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; a failure of any part ends all."""
        async with asyncio.TaskGroup() as group:
            beside = (
                self._directory.run(),
                self._soft.run(),
                self._engine.run(self._look_soon),
                probe_lag(self.behind, self._metrics),
                self._serve(),
            )
            tasks = [group.create_task(work) for work in beside]
            await stop.wait()
            for task in tasks:
                task.cancel()
        await self._soft_log.stop()

    def _look_soon(self) -> None:
        if self._pool is not None:
            self._pool.look_soon()

    async def _serve(self) -> None:
        pool = await self._directory.wait_for(self._name)
        while self._backend not in pool.backends:
            await asyncio.sleep(1.0)
            pool = self._directory.view.pools.get(self._name, pool)
        self._pool = EnginePool(
            self._settings,
            pool,
            self._engine,
            self._connect,
            self._soft,
            self._metrics,
            lambda: self._directory.view.installation,
            self._at_once,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pool.run())
            if self._beside is not None:
                group.create_task(self._keep_beside(self._beside, self._pool.lane))

    async def _keep_beside(self, beside: Beside, lane: AgentLane) -> None:
        await beside(lane, lambda: self._directory.view)
