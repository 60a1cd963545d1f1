"""The clocks of the shells; cores get the `at` of records instead."""

from __future__ import annotations

import time
from typing import NamedTuple

from shared.contracts.clocks import ClockStepped


def now_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def boot_ms() -> int:
    """Milliseconds since the machine was booted, with the time in which it was suspended."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


STEP_MS = 1_000
"""The wall clock steps where it moves by so much more, or less, than the monotonic clock."""

DRIFT = 1_000
"""Of so many ms one may be drift: clocks that are adjusted slowly differ by half of that."""

READ_S = 0.1
"""Readings of the two clocks that are further apart are not compared: the process was paused."""


class Reading(NamedTuple):
    """The two clocks at one moment, and the steps that were noticed until then."""

    wall_ms: int
    at_s: float
    """By the monotonic clock."""
    steps: int
    stepped_ms: int
    """By how much the wall clock has stepped in all."""


class WallClock:
    """Notices the steps of the wall clock against the monotonic one, once for a whole process."""

    def __init__(self) -> None:
        self.steps = 0
        self._stepped_ms = 0
        self._seen: tuple[int, float] | None = None

    def read(self) -> Reading:
        """Return both clocks. A step is noticed by the first reading after it.

        While the process is paused between its two readings, the wall clock is that of the last
        call plus the time since.
        """
        before_s = time.monotonic()
        wall, after_s = now_ms(), time.monotonic()
        if self._seen is not None:
            elapsed_ms = 1000 * (after_s - self._seen[1])
            expected = self._seen[0] + round(elapsed_ms)
            if after_s - before_s > READ_S:
                wall = expected
            step = wall - expected
            if abs(step) >= STEP_MS + elapsed_ms / DRIFT:
                self.steps += 1
                self._stepped_ms += step
        self._seen = (wall, after_s)
        return Reading(wall, after_s, self.steps, self._stepped_ms)


class LedgerClock:
    """The time at which a lane decides, in ms: never before the last record of its ledger.

    Where the wall clock is behind the ledger (another machine's clock was ahead, or this one was
    set back), the ledger's time goes on from its last record: it must not stand still.
    """

    def __init__(self, wall: WallClock | None = None) -> None:
        self._wall = wall or WallClock()
        self._read_at_s = time.monotonic()
        self._seen: tuple[int, Reading] | None = None

    @property
    def ahead_ms(self) -> int:
        """By how much the wall clock is ahead of the ledger's time on account of steps."""
        return 0

    def restore(self, last_step: ClockStepped | None) -> None:
        """Take the last step that the ledger has."""

    def note_read(self) -> None:
        """Note that the ledger has just been read, or appended to."""
        self._read_at_s = time.monotonic()

    def now_ms(self, last_at: int) -> int:
        """Return the time; `last_at` is that of the ledger's last record."""
        return self._time(self._wall.read(), last_at)

    def observe(self, last_at: int) -> tuple[int, int]:
        """Return the time, and by how many ms it stepped since the last call; 0: it did not.

        It steps with the wall clock, unless that is behind the ledger. Where another process has
        written since, its clock counts, and no step is known.
        """
        reading = self._wall.read()
        now = self._time(reading, last_at)
        seen, self._seen = self._seen, (now, reading)
        if seen is None or last_at > seen[0] or reading.steps == seen[1].steps:
            return now, 0
        step = now - seen[0] - round(1000 * (reading.at_s - seen[1].at_s))
        return now, step if abs(step) >= STEP_MS else 0

    def _time(self, reading: Reading, last_at: int) -> int:
        if reading.wall_ms >= last_at:
            return reading.wall_ms
        return last_at + int((reading.at_s - self._read_at_s) * 1000)

    def now_ns(self) -> int:
        """Return the wall clock in ns, for spans."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Return seconds for measuring pauses."""
        return time.monotonic()
