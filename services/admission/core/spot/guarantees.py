"""The guarantees of spot jobs: periods of guaranteed hours, each kept or failed.

A period begins when a spot job starts, and when the one before has been kept. It is kept when the
job has run so long or ended in it, and has failed when the job is evicted.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import NamedTuple


class PeriodCounts(NamedTuple):
    """Numbers of periods."""

    failed: int
    kept: int

    @property
    def failure_rate(self) -> float:
        """The part of periods that failed; 0 without any."""
        return self.failed / max(1, self.failed + self.kept)


@dataclass(slots=True)
class GuaranteeLog:
    """Periods in order of time: the recent ones one by one, all of them as numbers."""

    window_s: float
    """Older periods are forgotten one by one, and stay in `totals`."""
    totals: Counter[tuple[int, bool]] = field(default_factory=Counter)
    """(guaranteed hours, kept) -> periods."""
    _recent: deque[tuple[float, bool]] = field(default_factory=deque)

    def note(self, at_s: float, hours: int, kept: bool) -> None:
        """Note the end of a period; times do not fall."""
        self.totals[hours, kept] += 1
        self._recent.append((at_s, kept))
        while self._recent[0][0] < at_s - self.window_s:
            self._recent.popleft()

    def since(self, from_s: float) -> PeriodCounts:
        """Return the periods that ended after `from_s`, which the window bounds."""
        ended = [kept for at_s, kept in self._recent if at_s > from_s]
        return PeriodCounts(ended.count(False), ended.count(True))

    def all_of(self, hours: int | None = None) -> PeriodCounts:
        """Return all periods, or those of so many guaranteed hours."""
        counts = [0, 0]
        for (own, kept), number in self.totals.items():
            if hours in (None, own):
                counts[kept] += number
        return PeriodCounts(*counts)
