"""Stops of a worker by an injected fault. Pure: the clock is passed in, in ms of CLOCK_BOOTTIME.

A slow worker is stopped for a part of each period, so that what it does takes `factor` times as
long by the wall. The end is noted with the begin: no agent is needed to bring it about.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PERIOD_MS = 50
SLOW_PERIOD_MS = 250
"""Without a pid namespace, where each turn has to find the processes."""
FLAP_MS = 10_000
LONGEST_MS = 3_600_000
LARGEST_FACTOR = 100.0
FAULTS = ("slow", "stop", "flap")


class InjectedFault:
    """A fault from one moment to another."""

    __slots__ = ("factor", "fault", "from_ms", "incarnation", "until_ms")

    def __init__(
        self, incarnation: str, fault: str, factor: float, from_ms: int, until_ms: int
    ) -> None:
        """Check the values. Raises ValueError."""
        if fault not in FAULTS:
            raise ValueError(f"fault: {fault!r}; one of {', '.join(FAULTS)} is allowed")
        if not 1 <= factor <= LARGEST_FACTOR:
            raise ValueError(f"factor: {factor}; 1 to {LARGEST_FACTOR:g} is allowed")
        self.incarnation = incarnation
        self.fault = fault
        self.factor = factor
        self.from_ms = from_ms
        self.until_ms = min(until_ms, from_ms + LONGEST_MS)

    def stops_at(self, now_ms: int, period_ms: int = PERIOD_MS) -> bool:
        """Return whether the worker stands still."""
        if not self.from_ms <= now_ms < self.until_ms:
            return False
        if self.fault == "stop":
            return True
        if not self._is_slow(now_ms):
            return False
        return (now_ms - self.from_ms) % period_ms >= self._run_ms(period_ms)

    def next_ms(self, now_ms: int, period_ms: int = PERIOD_MS) -> int:
        """Return the ms until something changes."""
        left_ms = self.until_ms - now_ms
        if self.fault == "stop" or left_ms <= 0:
            return left_ms
        passed_ms = now_ms - self.from_ms
        if not self._is_slow(now_ms):
            return min(left_ms, FLAP_MS - passed_ms % FLAP_MS)
        in_period_ms, run_ms = passed_ms % period_ms, self._run_ms(period_ms)
        edge_ms = run_ms if in_period_ms < run_ms else period_ms
        return min(left_ms, edge_ms - in_period_ms)

    def is_over(self, now_ms: int) -> bool:
        return now_ms >= self.until_ms

    def _is_slow(self, now_ms: int) -> bool:
        flaps = (now_ms - self.from_ms) // FLAP_MS
        return self.fault != "flap" or flaps % 2 == 0

    def _run_ms(self, period_ms: int) -> int:
        """Return the ms of a period in which the worker runs, at least 1."""
        return max(1, round(period_ms / self.factor))


def read_fault(document: dict[str, Any]) -> InjectedFault | None:
    """Return the fault that the agent noted; None if there is none, or it cannot be read."""
    try:
        return InjectedFault(
            str(document["incarnation"]),
            str(document["fault"]),
            float(document["factor"]),
            int(document["from_boot_ms"]),
            int(document["until_boot_ms"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
