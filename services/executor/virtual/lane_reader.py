"""Reads the placement ledger of one pool: fold, lease and snapshots."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from aiokafka.errors import KafkaError

from services.executor.core.virtual.inventory import InventoryNode
from services.executor.core.virtual.membership import resume
from services.executor.core.virtual.state import ExecutorState
from services.executor.pool_ledger import LEDGER, PoolLedger
from services.executor.virtual.lease import ReadLease
from services.executor.virtual.performer import Performer
from shared.bus.folds.fold_key import fold_key
from shared.bus.folds.snapshots import Snapshots
from shared.bus.logs.log import Log
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.telemetry.metrics import Metrics

FOLD = (
    "services.executor.core.virtual.react",
    "services.executor.core.virtual.membership",
    "services.executor.core.consumed",
    "services.executor.virtual.performer",
)
"""The modules that change the state, and the one that calls them."""

log = logging.getLogger(__name__)


def snapshots_of(
    folder: Path, partition: int, nodes: Mapping[str, InventoryNode]
) -> Snapshots[ExecutorState]:
    """Return the snapshots for this inventory; another one folds another state."""
    key = fold_key(FOLD, parameters=repr(sorted(nodes.items())))
    return Snapshots(folder, LEDGER, partition, key)


class LaneReader:
    """Passes accepted facts to the performer in order, and watches how fresh they are."""

    def __init__(
        self, log: Log, performer: Performer, snapshots: Snapshots[ExecutorState], metrics: Metrics
    ) -> None:
        self._performer = performer
        self._partition = performer.state.partition
        self._ledger = PoolLedger(log, self._partition, snapshots, metrics)
        self._lease = ReadLease(monotonic())
        self.acting = False

    @property
    def expired(self) -> bool:
        return self._lease.expired

    async def catch_up(self, incarnation: str) -> None:
        """Fold up to the present end, then begin to act."""
        self._restore()
        await self._ledger.start()
        while not self._ledger.caught_up:
            self._fold(await self._ledger.poll())
        self._lease = ReadLease(monotonic())
        self._performer.take_over(incarnation)
        self.acting = True

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            batch = await self._ledger.poll()
            self.check_lease()
            self._fold(batch)
            self._lease.read_to(self._ledger.next)

    def check_lease(self) -> None:
        """Stop all workers after a lost lease: placement may reassign their GPUs."""
        if self._lease.check(monotonic(), self._performer.state.lease_s):
            log.warning("ledger unreadable, stopping workers", extra={"partition": self._partition})
            self._performer.rejoin()

    async def keep_lease(self) -> None:
        """Request the ledger's end from the broker, several times per lease."""
        while True:
            every_s = self._performer.state.lease_s / 10
            requested_s = monotonic()
            try:
                async with asyncio.timeout(every_s):
                    self._lease.set_end(requested_s, await self._ledger.end())
                self._lease.read_to(self._ledger.next)
            except (TimeoutError, KafkaError, OutcomeUnknown, OSError) as error:
                log.warning("broker does not respond", extra={"error": repr(error)})
            self.check_lease()
            await asyncio.sleep(max(0.0, every_s - (monotonic() - requested_s)))

    async def keep_snapshots(self) -> None:
        """Store snapshots now and then, until cancelled."""
        await self._ledger.keep_snapshots(lambda: self._performer.state)

    async def store_snapshot(self) -> None:
        """Store a snapshot for the next start, unless it would save only a few records."""
        await self._ledger.store_snapshot(self._performer.state)

    def now_ms(self) -> int:
        """Return the time of the ledger, ms."""
        return self._ledger.now_ms()

    async def behind(self) -> dict[TP, int]:
        """Return the number of records that are not folded yet."""
        return await self._ledger.behind()

    async def stop(self) -> None:
        await self._ledger.stop()

    def _restore(self) -> None:
        state = self._ledger.restore()
        if state is not None:
            resume(state, self._performer.state)
            self._performer.state = state

    def _fold(self, batch: list[Accepted]) -> None:
        for accepted in batch:
            record = accepted.record
            self._performer.on_facts(self._ledger.facts(record, record.events()))
