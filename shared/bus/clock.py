"""The clocks of the shells; cores get the `at` of records instead."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def boot_ms() -> int:
    """Milliseconds since the machine was booted, with the time in which it was suspended."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class LedgerClock:
    """The time at which a lane decides, in ms: never before the last record of its ledger.

    Where the wall clock is behind the ledger (another machine's clock was ahead, or this one was
    set back), the ledger's time goes on from its last record: it must not stand still.
    """

    def __init__(self) -> None:
        self._read_at_s = time.monotonic()

    def note_read(self) -> None:
        """Note that the ledger has just been read, or appended to."""
        self._read_at_s = time.monotonic()

    def now_ms(self, last_at: int) -> int:
        """Return the time; `last_at` is that of the ledger's last record."""
        wall = now_ms()
        if wall >= last_at:
            return wall
        return last_at + int((time.monotonic() - self._read_at_s) * 1000)

    def now_ns(self) -> int:
        """Return the wall clock in ns, for spans."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Return seconds for measuring pauses."""
        return time.monotonic()
