"""One pool of agents: the fold of its ledger, and the relays of what its agents send."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from time import monotonic

from aiokafka.errors import KafkaError

from services.executor.agents.lane_relays import LaneRelays
from services.executor.core.agents.evolve import end_record, evolve
from services.executor.core.agents.state import AgentPool
from services.executor.pool_ledger import LEDGER, PoolLedger
from services.executor.settings import ExecutorSettings
from shared.bus.folds.fold_key import key_of_state
from shared.bus.folds.snapshots import Snapshots
from shared.bus.logs.log import Log
from shared.contracts.nodes import Backend
from shared.contracts.pools import PoolConfigured
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.telemetry.metrics import Metrics

BEHIND_AFTER_S = 10.0
"""A lane that has not read its ledger to the end for so long gives no orders."""
FRESH_EVERY_S = 2.0

READ_ERRORS = (TimeoutError, KafkaError, OutcomeUnknown, OSError)
"""Errors of reading a ledger to its end while the broker is away."""

log = logging.getLogger(__name__)


class AgentLane:
    """Folds the lane's ledger while `run` runs; `wake` gets the nodes with new orders."""

    def __init__(
        self,
        settings: ExecutorSettings,
        pool: PoolConfigured,
        connect: Callable[[], Log],
        metrics: Metrics,
        wake: Callable[[Iterable[str]], None],
        backend: Backend = "agent",
    ) -> None:
        self.pool = pool.pool
        self.state = AgentPool(pool.partition, backend)
        self.caught_up = asyncio.Event()
        self._wake = wake
        partition = pool.partition
        snapshots: Snapshots[AgentPool] = Snapshots(
            settings.folder, LEDGER, partition, key_of_state(AgentPool)
        )
        self._ledger = PoolLedger(connect(), partition, snapshots, metrics)
        self._fresh_s = monotonic()
        self.relays = LaneRelays(settings, pool, connect(), connect())

    @property
    def partition(self) -> int:
        return self.state.partition

    def ledger_ms(self) -> int:
        """Return the time of the ledger, ms."""
        return self._ledger.now_ms()

    def is_fresh(self) -> bool:
        """Return whether the ledger was read to its end lately."""
        return monotonic() - self._fresh_s <= BEHIND_AFTER_S

    async def run(self) -> None:
        """Fold to the present end, then read, relay and store snapshots until cancelled."""
        try:
            self.state = self._ledger.restore() or self.state
            await self._ledger.start()
            while not self._ledger.caught_up:
                self._fold(await self._ledger.poll())
            self._fresh_s = monotonic()
            self.caught_up.set()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._read())
                group.create_task(self._keep_fresh())
                group.create_task(self._ledger.keep_snapshots(lambda: self.state))
                self.relays.start(group)
        finally:
            await self._ledger.stop()
            await self.relays.stop()

    async def read_to_end(self) -> None:
        """Return once all is folded that the ledger holds now. Raises as `READ_ERRORS`."""
        async with asyncio.timeout(BEHIND_AFTER_S):
            end = await self._ledger.end()
            while self._ledger.next < end:
                await asyncio.sleep(0.01)

    async def behind(self) -> dict[TP, int]:
        """Return the number of records that are not folded yet."""
        return await self._ledger.behind()

    async def _read(self) -> None:
        while True:
            self._fold(await self._ledger.poll())

    async def _keep_fresh(self) -> None:
        """Read the ledger's end from the broker; the fold is fresh once it has reached it."""
        while True:
            requested_s = monotonic()
            try:
                await self.read_to_end()
                self._fresh_s = requested_s
            except READ_ERRORS as error:
                log.warning("ledger not read to its end", extra={"error": repr(error)})
            await asyncio.sleep(FRESH_EVERY_S)

    def _fold(self, batch: list[Accepted]) -> None:
        nodes = set[str]()
        for accepted in batch:
            nodes |= self._fold_record(accepted)
        if nodes:
            self._wake(nodes)

    def _fold_record(self, accepted: Accepted) -> set[str]:
        record, nodes = accepted.record, set[str]()
        events = record.events()
        for fact in self._ledger.facts(record, events):
            nodes |= evolve(self.state, fact)
        end_record(self.state, record.seq, len(events), record.w)
        return nodes
