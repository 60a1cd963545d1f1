"""The clock of the lanes that steps of the wall clock do not move."""

from __future__ import annotations

from shared.bus.clock import LedgerClock, Reading, WallClock, now_ms
from shared.contracts.clocks import ClockStepped

APPROACH = 20
"""After a step the ledger's time approaches the wall clock by one of so many ms."""


class SteadyClock(LedgerClock):
    """A ledger clock that steps of the wall clock do not move.

    The ledger's time goes on by the monotonic clock and approaches the wall clock by a twentieth:
    no wait, timeout or term ends by a step, and waits are off by 5 % at most until both agree.
    """

    def __init__(self, wall: WallClock | None = None) -> None:
        super().__init__(wall)
        self._ahead_ms = 0.0
        self._last: Reading | None = None
        self._unreported_ms = 0

    @property
    def ahead_ms(self) -> int:
        return round(self._ahead_ms)

    def restore(self, last_step: ClockStepped | None) -> None:
        """Go on behind a wall clock that stepped ahead before this process began.

        One that stepped back needs nothing: no time is before the ledger's last record.
        """
        if last_step is None or last_step.ahead_ms <= 0:
            return
        at = last_step.after_ms - last_step.ahead_ms
        since_ms = max(now_ms() - last_step.ahead_ms - at, 0)
        self._ahead_ms = approached(float(last_step.ahead_ms), since_ms)

    def now_ms(self, last_at: int) -> int:
        reading = self._wall.read()
        last, self._last = self._last or reading, reading
        step = reading.stepped_ms - last.stepped_ms
        self._unreported_ms += step
        elapsed_ms = 1000 * (reading.at_s - last.at_s)
        self._ahead_ms = approached(self._ahead_ms + step, elapsed_ms)
        now = int(reading.wall_ms - self._ahead_ms)
        if now < last_at:
            now = last_at + int((reading.at_s - self._read_at_s) * 1000)
            self._ahead_ms = float(reading.wall_ms - now)
        return now

    def observe(self, last_at: int) -> tuple[int, int]:
        """Return the time, and by how many ms the wall clock stepped since the last call."""
        now = self.now_ms(last_at)
        step, self._unreported_ms = self._unreported_ms, 0
        return now, step


def approached(ahead_ms: float, elapsed_ms: float) -> float:
    """Return what is left of a difference after some time."""
    by_ms = elapsed_ms / APPROACH
    return max(ahead_ms - by_ms, 0.0) if ahead_ms > 0 else min(ahead_ms + by_ms, 0.0)
