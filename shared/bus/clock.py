"""The clocks of the shells; cores get the `at` of records instead."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def boot_ms() -> int:
    """Milliseconds since the machine was booted, with the time in which it was suspended."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


STEP_MS = 1_000
"""The wall clock steps where it moves by so much more, or less, than the monotonic clock."""

READ_S = 0.1
"""Readings of the two clocks that are further apart are not compared: the process was paused."""


class LedgerClock:
    """The time at which a lane decides, in ms: never before the last record of its ledger.

    Where the wall clock is behind the ledger (another machine's clock was ahead, or this one was
    set back), the ledger's time goes on from its last record: it must not stand still.
    """

    def __init__(self) -> None:
        self._read_at_s = time.monotonic()
        self._seen: tuple[int, float] | None = None

    def note_read(self) -> None:
        """Note that the ledger has just been read, or appended to."""
        self._read_at_s = time.monotonic()

    def now_ms(self, last_at: int) -> int:
        """Return the time; `last_at` is that of the ledger's last record."""
        wall = now_ms()
        if wall >= last_at:
            return wall
        return last_at + int((time.monotonic() - self._read_at_s) * 1000)

    def observe(self, last_at: int) -> tuple[int, int]:
        """Return the time, and by how many ms it stepped since the last call; 0: it did not.

        Where another process has written since, its clock counts, and no step is known.
        """
        before_s = self.monotonic_s()
        now = self.now_ms(last_at)
        after_s = self.monotonic_s()
        if after_s - before_s > READ_S:
            return now, 0
        seen, self._seen = self._seen, (now, after_s)
        if seen is None or last_at > seen[0]:
            return now, 0
        step = now - seen[0] - round(1000 * (after_s - seen[1]))
        return now, step if abs(step) >= STEP_MS else 0

    def now_ns(self) -> int:
        """Return the wall clock in ns, for spans."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Return seconds for measuring pauses."""
        return time.monotonic()
