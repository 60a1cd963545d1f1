"""A lane's state out of its ledger: at the start, and whenever an append did not win."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from shared.bus.log import Entry, Feed, Log
from shared.bus.snapshots import Snapshot, Snapshots
from shared.ledger.decider import Decider
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor, Reader
from shared.ledger.record import decode

S = TypeVar("S")
POLL_S = 0.5
POLL_RECORDS = 2_000


@dataclass(slots=True)
class Folded(Generic[S]):
    reader: Reader
    state: S
    records: int = 0
    """Accepted ones that were folded behind the snapshot."""


class Fold(Generic[S]):
    """Reads one ledger partition from its snapshot, or from 0, to its end."""

    def __init__(
        self, decider: Decider[S], partition: int, log: Log, snapshots: Snapshots[S] | None
    ) -> None:
        self._decider = decider
        self._tp = TP(decider.ledger, partition)
        self._log = log
        self._snapshots = snapshots

    async def run(self, known: Cursor, seen: Callable[[Accepted], None] | None = None) -> Folded[S]:
        """The state at the end. `known` is what this process has read before: it must still be
        there. `seen` hears of every accepted record behind it."""
        snapshot = self._snapshots.load() if self._snapshots else None
        folded = self._start(snapshot)
        await self._check_bounds(folded.reader.cursor, known, snapshot is not None)
        end = await self._log.end(self._tp)
        anchors = [c for c in (folded.reader.cursor, known) if c.offset >= 0]
        first = max(folded.reader.cursor.offset, 0)
        feed = await self._log.feed({self._tp: first})
        try:
            await self._read(feed, folded, end, first, anchors, (known, seen))
        finally:
            await feed.close()
        return folded

    def _start(self, snapshot: Snapshot[S] | None) -> Folded[S]:
        ledger, partition = self._tp
        if snapshot is None:
            return Folded(Reader(ledger, partition), self._decider.initial(partition))
        return Folded(Reader(ledger, partition, snapshot.cursor), snapshot.state)

    async def _check_bounds(self, start: Cursor, known: Cursor, has_snapshot: bool) -> None:
        end = await self._log.end(self._tp)
        due = max(start.next, known.next)
        if end < due:
            raise TailLost(f"{self._tp.key} ends at {end}, and {due} was read before: tail lost")
        if not has_snapshot and await self._log.begin(self._tp) > 0:
            raise TailLost(f"{self._tp.key} does not begin at 0, and there is no snapshot")

    async def _read(
        self,
        feed: Feed,
        folded: Folded[S],
        end: int,
        position: int,
        anchors: list[Cursor],
        watch: tuple[Cursor, Callable[[Accepted], None] | None],
    ) -> None:
        known, seen = watch
        while position < end:
            polled = await feed.poll(POLL_S, POLL_RECORDS)
            for entry in polled.get(self._tp, []):
                position = entry.offset + 1
                self._check_anchors(entry, anchors)
                accepted = self._accept(folded, entry)
                if accepted and seen and entry.offset >= known.next:
                    seen(accepted)

    def _check_anchors(self, entry: Entry, anchors: list[Cursor]) -> None:
        for anchor in anchors:
            if entry.offset != anchor.offset:
                continue
            record = decode(entry.value)
            if record is None or record.id != anchor.id:
                raise TailLost(f"{self._tp.key} has another record at {entry.offset} than before")

    def _accept(self, folded: Folded[S], entry: Entry) -> Accepted | None:
        if entry.offset < folded.reader.cursor.next:
            return None
        accepted = folded.reader.offer(entry.offset, entry.value)
        if accepted is not None:
            folded.records += 1
            for fact in accepted.facts(own=True):
                self._decider.evolve(folded.state, fact)
        return accepted
