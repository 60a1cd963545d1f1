"""Times of a lane's snapshots and marks: a start folds little, and detects a lost tail."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Generic, TypeVar

from shared.bus.clock import LedgerClock
from shared.bus.folds.fold import Replica
from shared.bus.folds.snapshots import Snapshots
from shared.ledger.reader import Cursor

S = TypeVar("S")

MARK_EVERY_S = 0.2
"""Least time between two marks, so that they cost little, and the longest time, if the disk takes
it, for which an appended fact has none."""

COPYING_SHARE = 0.005
"""Largest share of its time for which a process copies its state for snapshots, which holds its
event loop: after a copy that takes long the next one comes later."""

log = logging.getLogger(__name__)


def pause_after(copied_s: float, least_s: float) -> float:
    """Return the s until the next copy, after one that held the loop for so long."""
    return max(least_s, copied_s / COPYING_SHARE)


class SnapshotPolicy(Generic[S]):
    """The policy over `Snapshots`; it does nothing for a lane without them.

    A snapshot is due once `every` records were folded or appended behind the last one, and not
    sooner than `pause_s` after it, or than `COPYING_SHARE` permits. Without a pause the times of
    snapshots follow from the records alone.
    """

    def __init__(
        self, snapshots: Snapshots[S] | None, clock: LedgerClock, *, every: int, pause_s: float
    ) -> None:
        self._snapshots = snapshots
        self._clock = clock
        self._every = every
        self._pause_s = pause_s
        self._stored_at_s = -math.inf
        self._copied_s = 0.0
        """Time for which the last copy of the state held the loop."""
        self._marked_at_s = 0.0
        self._marked_next = -1
        self._unmarked = asyncio.Event()
        """Set while a cursor waits for its mark."""
        self._is_kept = False
        """Whether `keep_marked` runs, which alone stores marks then."""
        self._is_failing = False

    def marked(self) -> Cursor:
        """Return the last cursor that this machine has stored."""
        return self._snapshots.marked() if self._snapshots is not None else Cursor()

    def mark_if_due(self, cursor: Cursor) -> None:
        """Store the cursor, once per `MARK_EVERY_S`, and not the same one again.

        While `keep_marked` runs it is left to that, as a write blocks the loop for milliseconds.
        An error, as on a full disk, is logged: the next call that is due tries again.
        """
        if self._snapshots is None or cursor.next == self._marked_next:
            return
        now_s = self._clock.monotonic_s()
        if self._is_kept or now_s - self._marked_at_s < MARK_EVERY_S:
            self._unmarked.set()
            return
        self._marked_at_s = now_s
        self._note_marked(cursor, self._try_mark(cursor))

    async def keep_marked(self, cursor: Callable[[], Cursor]) -> None:
        """Store the cursors in a thread, when they are due; runs until cancelled.

        So a process that is killed when its last append was `MARK_EVERY_S` ago has marked it.
        """
        self._is_kept = True
        try:
            while True:
                await self._unmarked.wait()
                self._unmarked.clear()
                due = cursor()
                self._note_marked(due, await asyncio.to_thread(self._try_mark, due))
                await asyncio.sleep(MARK_EVERY_S)
        finally:
            self._is_kept = False

    def _try_mark(self, cursor: Cursor) -> OSError | None:
        try:
            if self._snapshots is not None:
                self._snapshots.mark(cursor)
        except OSError as error:
            return error
        return None

    def _note_marked(self, cursor: Cursor, error: OSError | None) -> None:
        if error is not None:
            self._log_failure("mark", error)
        else:
            self._marked_next, self._is_failing = cursor.next, False

    async def store_if_due(self, replica: Replica[S]) -> None:
        """Store a snapshot if enough records and time have passed."""
        if self._snapshots is None or replica.records < self._every:
            return
        pause_s = pause_after(self._copied_s, self._pause_s) if self._pause_s else 0.0
        if self._clock.monotonic_s() - self._stored_at_s >= pause_s:
            await self.store(replica)

    async def store(self, replica: Replica[S]) -> None:
        """Store a snapshot of the replica, unless the last one is as new.

        An error, as on a full disk, is logged: it is due again after a pause.
        """
        if self._snapshots is None or not replica.records:
            return
        begun_s = self._clock.monotonic_s()
        packed, records = self._snapshots.pack(replica.cursor, replica.state), replica.records
        self._copied_s = self._clock.monotonic_s() - begun_s
        replica.records = 0
        try:
            await asyncio.to_thread(self._snapshots.store, replica.cursor.seq, packed)
        except OSError as error:
            replica.records += records
            self._log_failure("snapshot", error)
        self._stored_at_s = self._clock.monotonic_s()

    def _log_failure(self, kind: str, error: OSError) -> None:
        """Log the first failure of a row: each would be a line on the same full disk."""
        if self._is_failing or self._snapshots is None:
            return
        self._is_failing = True
        log.error(
            "a %s was not stored: %s; until one is, a start folds more of the ledger, and may not"
            " notice a lost tail",
            kind,
            error,
            extra={"path": str(error.filename or self._snapshots.folder)},
        )
