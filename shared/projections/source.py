"""Accepted records of all ledgers, in batches that a projection stores together with cursors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TypeVar

from shared.bus.logs.log import Log
from shared.bus.logs.tail import LedgerTail
from shared.contracts.topics import LEDGERS, TOPICS
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor
from shared.projections.ledger_events import LedgerBatch, decode_events

LedgerPartition = tuple[str, int]
Limits = Mapping[LedgerPartition, Cursor]


def ledger_partitions(lanes: int) -> list[LedgerPartition]:
    """Return every ledger partition of an installation with that many lanes."""
    return [
        (name, partition)
        for name in LEDGERS
        for partition in range(1 if TOPICS[name].single_partition else lanes)
    ]


def cursor_after(accepted: Accepted) -> Cursor:
    """Return the cursor of a reader that has just accepted this record."""
    record = accepted.record
    return Cursor(
        accepted.offset + 1, record.seq, record.id, accepted.offset, record.at, record.inputs
    )


T = TypeVar("T")


async def prefetch(poll: Callable[[], Awaitable[T]]) -> AsyncGenerator[T, None]:
    """Yield the results of `poll` for ever, each polled while the caller stores the one before."""
    pending = asyncio.ensure_future(poll())
    try:
        while True:
            result = await pending
            pending = asyncio.ensure_future(poll())
            yield result
    finally:
        pending.cancel()


class Source:
    """Reads all ledgers from stored cursors; records beyond a limit wait for a later poll."""

    def __init__(self, log: Log, partitions: int, cursors: Limits | None = None) -> None:
        self._cursors: dict[LedgerPartition, Cursor] = {
            partition: (cursors or {}).get(partition, Cursor())
            for partition in ledger_partitions(partitions)
        }
        ledgers: dict[str, list[int]] = {}
        for name, partition in self._cursors:
            ledgers.setdefault(name, []).append(partition)
        start = {TP(*partition): cursor for partition, cursor in self._cursors.items()}
        self._tail = LedgerTail(log, ledgers, start)
        self._pending: dict[LedgerPartition, list[Accepted]] = {}

    async def start(self) -> None:
        """Start reading; raises TailLost if a log no longer reaches back to its cursor."""
        await self._tail.start()

    async def stop(self) -> None:
        await self._tail.stop()

    @property
    def caught_up(self) -> bool:
        return self._tail.caught_up

    def has_reached(self, limits: Limits) -> bool:
        """Return whether the polled batches reach up to all limits."""
        return all(self._cursors[partition].seq >= limit.seq for partition, limit in limits.items())

    async def poll(
        self, wait_s: float, max_records: int, limits: Limits | None = None
    ) -> list[LedgerBatch]:
        """Return at most one batch per ledger partition, without records beyond the limits."""
        ready = self._take_ready(limits)
        if not ready:
            for accepted in await self._tail.poll(wait_s, max_records):
                partition = (accepted.ledger, accepted.partition)
                self._pending.setdefault(partition, []).append(accepted)
            ready = self._take_ready(limits)
        return [self._batch(partition, records) for partition, records in ready.items()]

    def _take_ready(self, limits: Limits | None) -> dict[LedgerPartition, list[Accepted]]:
        ready: dict[LedgerPartition, list[Accepted]] = {}
        for partition, pending in list(self._pending.items()):
            now, later = self._split(partition, pending, limits)
            if now:
                ready[partition] = now
            if later:
                self._pending[partition] = later
            else:
                del self._pending[partition]
        return ready

    @staticmethod
    def _split(
        partition: LedgerPartition, pending: list[Accepted], limits: Limits | None
    ) -> tuple[list[Accepted], list[Accepted]]:
        if limits is None:
            return pending, []
        last = limits.get(partition, Cursor()).seq
        now = [accepted for accepted in pending if accepted.record.seq <= last]
        return now, pending[len(now) :]

    def _batch(self, partition: LedgerPartition, records: list[Accepted]) -> LedgerBatch:
        before, end = self._cursors[partition], cursor_after(records[-1])
        self._cursors[partition] = end
        return LedgerBatch(*partition, before, end, decode_events(records))
