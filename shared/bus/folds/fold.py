"""Folds a lane's ledger into its state: at the start, and after a lost append."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from shared.bus.folds.snapshots import Snapshot, Snapshots
from shared.bus.logs.log import Entry, Feed, Log
from shared.ledger.decider import Decider
from shared.ledger.errors import LaneHalted, TailLost
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor, Reader
from shared.ledger.record import decode

S = TypeVar("S")
POLL_S = 0.5
POLL_RECORDS = 2_000

OnRecord = Callable[[Accepted], None]


@dataclass(slots=True)
class Replica(Generic[S]):
    """A lane's copy of its ledger: how far it is read, and the state at that place."""

    reader: Reader
    state: S
    records: int = 0
    """Accepted records behind the last snapshot."""

    @property
    def cursor(self) -> Cursor:
        return self.reader.cursor


class Fold(Generic[S]):
    """Reads one ledger partition from its snapshot, or from 0, to its end."""

    def __init__(
        self, decider: Decider[S], partition: int, log: Log, snapshots: Snapshots[S] | None
    ) -> None:
        self._decider = decider
        self._tp = TP(decider.ledger, partition)
        self._log = log
        self._snapshots = snapshots

    async def run(self, known: Cursor, on_record: OnRecord | None = None) -> Replica[S]:
        """Return the replica at the end of the log.

        `known` is the cursor of an earlier read: its record must still be there, else TailLost.
        `on_record` is called with every accepted record behind it.
        """
        snapshot = self._snapshots.load() if self._snapshots else None
        replica = self._begin(snapshot)
        await self._check_bounds(replica.cursor, known, snapshot is not None)
        end = await self._log.end(self._tp)
        anchors = [cursor for cursor in (replica.cursor, known) if cursor.offset >= 0]
        first = max(replica.cursor.offset, 0)
        feed = await self._log.feed({self._tp: first})
        try:
            await self._read(feed, replica, end, first, anchors, (known, on_record))
        finally:
            await feed.close()
        return replica

    def _begin(self, snapshot: Snapshot[S] | None) -> Replica[S]:
        ledger, partition = self._tp
        if snapshot is None:
            return Replica(Reader(ledger, partition), self._decider.initial(partition))
        return Replica(Reader(ledger, partition, snapshot.cursor), snapshot.state)

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
        replica: Replica[S],
        end: int,
        position: int,
        anchors: list[Cursor],
        watch: tuple[Cursor, OnRecord | None],
    ) -> None:
        known, on_record = watch
        while position < end:
            polled = await feed.poll(POLL_S, POLL_RECORDS)
            for entry in polled.get(self._tp, []):
                position = entry.offset + 1
                self._check_anchors(entry, anchors)
                accepted = self._accept(replica, entry)
                if accepted and on_record and entry.offset >= known.next:
                    on_record(accepted)

    def _check_anchors(self, entry: Entry, anchors: list[Cursor]) -> None:
        for anchor in anchors:
            if entry.offset != anchor.offset:
                continue
            record = decode(entry.value)
            if record is None or record.id != anchor.id:
                raise TailLost(f"{self._tp.key} has another record at {entry.offset} than before")

    def _accept(self, replica: Replica[S], entry: Entry) -> Accepted | None:
        if entry.offset < replica.cursor.next:
            return None
        accepted = replica.reader.offer(entry.offset, entry.value)
        if accepted is not None:
            replica.records += 1
            self._evolve(replica.state, accepted)
        return accepted

    def _evolve(self, state: S, accepted: Accepted) -> None:
        """Fold the facts of a record. Raises LaneHalted for one that this code cannot fold."""
        try:
            for fact in accepted.facts(own=True):
                self._decider.evolve(state, fact)
        except Exception as error:
            record = f"{self._tp.key}: record {accepted.record.seq}"
            raise LaneHalted(f"{record} cannot be folded: {type(error).__name__}") from error
