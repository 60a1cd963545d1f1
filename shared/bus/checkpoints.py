"""When a lane stores snapshots and marks: a start folds little, and detects a lost tail."""

from __future__ import annotations

import asyncio
import math
from typing import Generic, TypeVar

from shared.bus.clock import LedgerClock
from shared.bus.fold import Replica
from shared.bus.snapshots import Snapshots
from shared.ledger.reader import Cursor

S = TypeVar("S")

MARK_EVERY_S = 1.0


class Checkpoints(Generic[S]):
    """The policy over `Snapshots`; it does nothing for a lane without them.

    A snapshot is due once `every` records were folded or appended behind the last one, and not
    sooner than `pause_s` after it.
    """

    def __init__(
        self, snapshots: Snapshots[S] | None, clock: LedgerClock, *, every: int, pause_s: float
    ) -> None:
        self._snapshots = snapshots
        self._clock = clock
        self._every = every
        self._pause_s = pause_s
        self._stored_at_s = -math.inf
        self._marked_at_s = 0.0
        self._marked_next = -1

    def marked(self) -> Cursor:
        """Return the last cursor that this machine has stored."""
        return self._snapshots.marked() if self._snapshots is not None else Cursor()

    def mark_if_due(self, cursor: Cursor) -> None:
        """Store the cursor, once per `MARK_EVERY_S`, and not the same one again."""
        if self._snapshots is None or cursor.next == self._marked_next:
            return
        now_s = self._clock.monotonic_s()
        if now_s - self._marked_at_s >= MARK_EVERY_S:
            self._snapshots.mark(cursor)
            self._marked_at_s, self._marked_next = now_s, cursor.next

    async def store_if_due(self, replica: Replica[S]) -> None:
        """Store a snapshot if enough records and time have passed."""
        if self._snapshots is None or replica.records < self._every:
            return
        if self._clock.monotonic_s() - self._stored_at_s >= self._pause_s:
            await self.store(replica)

    async def store(self, replica: Replica[S]) -> None:
        """Store a snapshot of the replica, unless the last one is as new."""
        if self._snapshots is None or not replica.records:
            return
        packed = self._snapshots.pack(replica.cursor, replica.state)
        replica.records = 0
        await asyncio.to_thread(self._snapshots.store, replica.cursor.seq, packed)
        self._stored_at_s = self._clock.monotonic_s()
