"""A ledger of one pool, that of placement if no other is named, from its newest snapshot on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from services.executor.core.consumed import is_consumed
from shared.bus.folds.snapshot_policy import pause_after
from shared.bus.folds.snapshots import Snapshots
from shared.bus.logs.log import Log
from shared.bus.logs.tail import LedgerTail
from shared.contracts.base import UnknownType
from shared.contracts.codec import decode_event
from shared.ledger.decider import Fact
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.ledger.record import Record, StoredEvent
from shared.telemetry.metrics import Metrics

LEDGER = "placement"
SNAPSHOT_EVERY_S = 30.0
"""Least time between two snapshots; longer where they take long to copy."""
SNAPSHOT_RECORDS = 1_000

S = TypeVar("S")


class PoolLedger(Generic[S]):
    """Reads accepted records and stores snapshots of their fold `S`, which the caller keeps."""

    def __init__(
        self,
        log: Log,
        partition: int,
        snapshots: Snapshots[S],
        metrics: Metrics,
        *,
        ledger: str = LEDGER,
        consumes: Callable[[str], bool] = is_consumed,
    ) -> None:
        """`consumes` takes a wire type; events of others are not decoded."""
        self._log = log
        self._consumes = consumes
        self._tp = TP(ledger, partition)
        self._snapshots = snapshots
        self._metrics = metrics
        self._tail = LedgerTail(log, {ledger: [partition]})
        self._read_s = time.monotonic()
        self._stored_seq = 0
        self._ignored = 0

    def restore(self) -> S | None:
        """Return the state of the newest snapshot and go on behind it. Call it before `start`."""
        snapshot = self._snapshots.load()
        if snapshot is None:
            return None
        self._stored_seq = snapshot.cursor.seq
        cursors = {self._tp: snapshot.cursor}
        self._tail = LedgerTail(self._log, {self._tp.topic: [self._tp.partition]}, cursors)
        return snapshot.state

    async def start(self) -> None:
        """Open the feed. Raises TailLost for a ledger that ends before its snapshot."""
        await self._tail.start()

    async def stop(self) -> None:
        await self._tail.stop()

    @property
    def caught_up(self) -> bool:
        """Return whether everything that was there at `start` has been returned."""
        return self._tail.caught_up

    @property
    def next(self) -> int:
        """The offset behind the last record that was returned."""
        return self._tail.cursor(*self._tp).next

    def now_ms(self) -> int:
        """Return the time of the ledger in ms: that of its last record, and the time since it came.

        Times in the ledger are compared with it alone: the clock of this machine may step, and
        placement's may be another one.
        """
        return self._tail.cursor(*self._tp).at + round(1000 * (time.monotonic() - self._read_s))

    async def end(self) -> int:
        """Return the offset behind the ledger's last record, as the broker says."""
        return await self._tail.end(*self._tp)

    async def behind(self) -> dict[TP, int]:
        """Return the number of records that were not returned yet."""
        return await self._tail.behind()

    async def poll(self) -> list[Accepted]:
        """Return the next records; fold them before the next await, or a snapshot lacks them."""
        batch = await self._tail.poll()
        if batch:
            self._read_s = time.monotonic()
        self._metrics.inputs.labels(self._tp.topic).inc(len(batch))
        ignored, self._ignored = self._tail.ignored - self._ignored, self._tail.ignored
        self._metrics.ignored_records.labels("reader_rule").inc(ignored)
        return batch

    def facts(self, record: Record, events: Iterable[StoredEvent]) -> Iterator[Fact]:
        """Decode the consumed events of a record; a newer type is counted and skipped."""
        for index, stored in enumerate(events):
            if not self._consumes(stored.type):
                continue
            try:
                event = decode_event(stored.type, bytes(stored.data))
            except UnknownType:
                self._metrics.ignored_records.labels("unknown_type").inc()
                continue
            yield Fact(event, *self._tp, record.seq, index, record.at)

    async def keep_snapshots(self, state: Callable[[], S]) -> None:
        """Store a snapshot at once, so that repeated kills do not make each fold longer."""
        while True:
            held_s = await self.store_snapshot(state())
            await asyncio.sleep(pause_after(held_s, SNAPSHOT_EVERY_S))

    async def store_snapshot(self, state: S) -> float:
        """Store a snapshot for the next start, unless it would save only a few records.

        Returns the s for which copying the state held the event loop.
        """
        cursor = self._tail.cursor(*self._tp)
        if cursor.seq - self._stored_seq < SNAPSHOT_RECORDS:
            return 0.0
        begun_s = time.monotonic()
        packed = self._snapshots.pack(cursor, state)
        held_s = time.monotonic() - begun_s
        await asyncio.to_thread(self._snapshots.store, cursor.seq, packed)
        self._stored_seq = cursor.seq
        return held_s
