"""Reads the placement ledger of one pool: fold, lease and snapshots."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic

from aiokafka.errors import KafkaError

from services.executor.agent import Agent
from services.executor.core.effects import WorkerEnded
from services.executor.core.inventory import InventoryNode
from services.executor.core.membership import resume
from services.executor.core.react import acts_on
from services.executor.core.state import ExecutorState
from services.executor.lease import ReadLease
from shared.bus.log import Log
from shared.bus.snapshots import Snapshots
from shared.bus.tail import LedgerTail
from shared.contracts.base import UnknownType
from shared.contracts.codec import decode_event
from shared.ledger.decider import Fact
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.telemetry.metrics import Metrics

LEDGER = "placement"
SNAPSHOT_EVERY_S = 30.0
SNAPSHOT_RECORDS = 1_000

log = logging.getLogger(__name__)


def snapshots_of(
    folder: Path, partition: int, nodes: Mapping[str, InventoryNode]
) -> Snapshots[ExecutorState]:
    """Return the snapshots for this inventory; another one folds another state."""
    inventory = hashlib.sha256(repr(sorted(nodes.items())).encode()).hexdigest()[:16]
    return Snapshots(folder, LEDGER, partition, f"{ExecutorState.SCHEMA}.{inventory}")


class LaneReader:
    """Passes accepted facts to the agent in order, and watches how fresh they are."""

    def __init__(
        self, log: Log, agent: Agent, snapshots: Snapshots[ExecutorState], metrics: Metrics
    ) -> None:
        self._log = log
        self._agent = agent
        self._snapshots = snapshots
        self._partition = agent.state.partition
        self._tail = LedgerTail(log, {LEDGER: [self._partition]})
        self._lease = ReadLease(monotonic())
        self._stored_seq = 0
        self._metrics = metrics
        self._ignored = 0
        self.acting = False

    @property
    def lapsed(self) -> bool:
        return self._lease.lapsed

    async def catch_up(self, incarnation: str, ends: Mapping[str, WorkerEnded]) -> None:
        """Fold up to the present end, then begin to act."""
        self._restore()
        await self._tail.start()
        while not self._tail.caught_up:
            self._fold(await self._tail.poll())
        self._lease = ReadLease(monotonic())
        self._agent.take_over(incarnation, ends)
        self.acting = True

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            batch = await self._tail.poll()
            self.check_lease()
            self._fold(batch)
            self._lease.read_to(self._next)

    def check_lease(self) -> None:
        """Stop all workers after a lost lease: placement may reassign their GPUs."""
        if self._lease.check(monotonic(), self._agent.state.lease_s):
            log.warning("ledger unreadable, stopping workers", extra={"partition": self._partition})
            self._agent.rejoin()

    async def keep_lease(self) -> None:
        """Request the ledger's end from the broker, several times per lease."""
        while True:
            every_s = self._agent.state.lease_s / 10
            requested_s = monotonic()
            try:
                async with asyncio.timeout(every_s):
                    self._lease.set_end(requested_s, await self._tail.end(LEDGER, self._partition))
                self._lease.read_to(self._next)
            except (TimeoutError, KafkaError, OutcomeUnknown, OSError) as error:
                log.warning("broker does not respond", extra={"error": repr(error)})
            self.check_lease()
            await asyncio.sleep(max(0.0, every_s - (monotonic() - requested_s)))

    async def keep_snapshots(self) -> None:
        """Store a snapshot at once, so that repeated kills do not make each fold longer."""
        while True:
            await self.store_snapshot()
            await asyncio.sleep(SNAPSHOT_EVERY_S)

    async def store_snapshot(self) -> None:
        """Store a snapshot for the next start, unless it would save only a few records."""
        cursor = self._tail.cursor(LEDGER, self._partition)
        if cursor.seq - self._stored_seq >= SNAPSHOT_RECORDS:
            packed = self._snapshots.pack(cursor, self._agent.state)
            await asyncio.to_thread(self._snapshots.store, cursor.seq, packed)
            self._stored_seq = cursor.seq

    async def behind(self) -> dict[TP, int]:
        """Return the number of records that are not folded yet."""
        return await self._tail.behind()

    async def stop(self) -> None:
        await self._tail.stop()

    @property
    def _next(self) -> int:
        return self._tail.cursor(LEDGER, self._partition).next

    def _restore(self) -> None:
        snapshot = self._snapshots.load()
        if snapshot is None:
            return
        resume(snapshot.state, self._agent.state)
        self._agent.state = snapshot.state
        self._stored_seq = snapshot.cursor.seq
        cursors = {TP(LEDGER, self._partition): snapshot.cursor}
        self._tail = LedgerTail(self._log, {LEDGER: [self._partition]}, cursors)

    def _fold(self, batch: list[Accepted]) -> None:
        for accepted in batch:
            self._agent.on_facts(self._facts(accepted))
        self._metrics.inputs.labels(LEDGER).inc(len(batch))
        ignored, self._ignored = self._tail.ignored - self._ignored, self._tail.ignored
        self._metrics.ignored_records.labels("reader_rule").inc(ignored)

    def _facts(self, accepted: Accepted) -> Iterator[Fact]:
        """Decode the relevant events; a type newer than this code is counted and skipped."""
        record = accepted.record
        for index, stored in enumerate(record.events()):
            if not acts_on(stored.type):
                continue
            try:
                event = decode_event(stored.type, bytes(stored.data))
            except UnknownType:
                self._metrics.ignored_records.labels("unknown_type").inc()
                continue
            yield Fact(event, LEDGER, self._partition, record.seq, index, record.at)
