"""Waits between attempts: they double up to a limit, and vary so that nodes do not come at once."""

from __future__ import annotations

LEAST_S = 0.1


class Backoff:
    """Waits of one series of attempts; `reset` begins a new one."""

    def __init__(self) -> None:
        self._failures = 0

    def reset(self) -> None:
        self._failures = 0

    def next_s(self, longest_s: float, chance: float) -> float:
        """Return the next wait; `chance` is drawn from [0, 1)."""
        wait_s: float = min(longest_s, LEAST_S * 2 ** min(self._failures, 30))
        self._failures += 1
        return wait_s * (0.5 + chance / 2)
