"""Accepted records of all ledgers in batches that a projection can store with their cursors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TypeVar

from shared.bus.log import Log
from shared.bus.tail import LedgerTail
from shared.contracts.topics import LEDGERS, TOPICS
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor
from shared.projections.ledger_events import LedgerBatch, decode_events

LedgerPartition = tuple[str, int]
Limits = Mapping[LedgerPartition, Cursor]


def ledger_partitions(partitions: int) -> list[LedgerPartition]:
    """Every ledger partition of an installation with that many lanes."""
    return [
        (name, partition)
        for name in LEDGERS
        for partition in range(1 if TOPICS[name].single_partition else partitions)
    ]


def cursor_after(accepted: Accepted) -> Cursor:
    """Where a reader stands that has just accepted this record."""
    record = accepted.record
    return Cursor(
        accepted.offset + 1, record.seq, record.id, accepted.offset, record.at, record.inputs
    )


T = TypeVar("T")


async def prefetch(poll: Callable[[], Awaitable[T]]) -> AsyncGenerator[T, None]:
    """What `poll` finds, for ever; while the caller waits for Postgres the next is decoded."""
    coming = asyncio.ensure_future(poll())
    try:
        while True:
            found = await coming
            coming = asyncio.ensure_future(poll())
            yield found
    finally:
        coming.cancel()


class Source:
    """Reads from stored cursors on; what lies behind a limit is kept for a later call."""

    def __init__(self, log: Log, partitions: int, cursors: Limits | None = None) -> None:
        self._at: dict[LedgerPartition, Cursor] = {
            place: (cursors or {}).get(place, Cursor()) for place in ledger_partitions(partitions)
        }
        ledgers: dict[str, list[int]] = {}
        for name, partition in self._at:
            ledgers.setdefault(name, []).append(partition)
        start = {TP(*place): cursor for place, cursor in self._at.items()}
        self._tail = LedgerTail(log, ledgers, start)
        self._held: dict[LedgerPartition, list[Accepted]] = {}

    async def start(self) -> None:
        """Raises TailLost when a log no longer reaches to its cursor."""
        await self._tail.start()

    async def stop(self) -> None:
        await self._tail.stop()

    @property
    def caught_up(self) -> bool:
        return self._tail.caught_up

    def reached(self, limits: Limits) -> bool:
        return all(self._at[place].seq >= limit.seq for place, limit in limits.items())

    async def poll(
        self, wait_s: float, max_records: int, limits: Limits | None = None
    ) -> list[LedgerBatch]:
        """At most one batch per ledger partition, none of it behind the limits."""
        ready = self._ready(limits)
        if not ready:
            for accepted in await self._tail.poll(wait_s, max_records):
                place = (accepted.ledger, accepted.partition)
                self._held.setdefault(place, []).append(accepted)
            ready = self._ready(limits)
        return [self._batch(place, records) for place, records in ready.items()]

    def _ready(self, limits: Limits | None) -> dict[LedgerPartition, list[Accepted]]:
        ready: dict[LedgerPartition, list[Accepted]] = {}
        for place, held in list(self._held.items()):
            now, later = self._split(place, held, limits)
            if now:
                ready[place] = now
            if later:
                self._held[place] = later
            else:
                del self._held[place]
        return ready

    @staticmethod
    def _split(
        place: LedgerPartition, held: list[Accepted], limits: Limits | None
    ) -> tuple[list[Accepted], list[Accepted]]:
        if limits is None:
            return held, []
        last = limits.get(place, Cursor()).seq
        now = [accepted for accepted in held if accepted.record.seq <= last]
        return now, held[len(now) :]

    def _batch(self, place: LedgerPartition, records: list[Accepted]) -> LedgerBatch:
        before, end = self._at[place], cursor_after(records[-1])
        self._at[place] = end
        return LedgerBatch(*place, before, end, decode_events(records))
