"""The time for which reports of an incarnation that is over are still sent."""

from __future__ import annotations

LAST_REPORTS_MS = 30_000
"""Time in sessions."""
LEAST_SESSION_MS = 10_000
"""Least time that a session counts for: many that end at once would never suffice otherwise."""


class LastReportsTimer:
    """Counts the time over all sessions. Times are ms of CLOCK_BOOTTIME."""

    def __init__(self) -> None:
        self._spent_ms = 0
        self._since_ms: int | None = None

    def go_on(self, now_ms: int) -> None:
        """Count from now, in a session and with the incarnation over, unless it counts already."""
        if self._since_ms is None:
            self._since_ms = now_ms

    def pause(self, now_ms: int) -> None:
        """Note the end of a session."""
        if self._since_ms is not None:
            self._spent_ms += max(LEAST_SESSION_MS, now_ms - self._since_ms)
            self._since_ms = None

    def is_over(self, now_ms: int) -> bool:
        running_ms = 0 if self._since_ms is None else now_ms - self._since_ms
        return self._spent_ms + running_ms > LAST_REPORTS_MS
