"""The usual pace of a series of jobs: those of one tenant, name, GPU type and size. Pure.

A job that is slow from its first iteration on has no change point, and a job of one process has no
peers. Its earlier runs are left to compare it with.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import log
from statistics import median

from shared.contracts.paces import PaceLearned

KEPT = 5
"""Runs of a series, the newest ones: a change that is meant becomes usual after three."""
LEAST = 3
MOST_SERIES = 10_000
LEAST_SPREAD = 0.05
"""Least relative standard deviation that is assumed between runs."""
TO_SIGMA = 1.4826
SLOWER = log(1.2)
"""Least size of a slowdown."""
SCORE = 3.5
"""Robust standard deviations between runs."""


@dataclass(frozen=True, slots=True)
class UsualPace:
    """`level` is the logarithm of s per unit of work."""

    level: float
    spread: float
    runs: int

    def is_exceeded_by(self, level: float) -> bool:
        above = level - self.level
        return above >= SLOWER and above >= SCORE * self.spread


@dataclass(slots=True)
class PaceBook:
    """Paces of ended runs by series and whether work is reported, oldest series first."""

    _runs: dict[tuple[str, bool], deque[float]] = field(default_factory=dict)

    def note(self, event: PaceLearned) -> None:
        key = (event.series, event.has_work)
        runs = self._runs.pop(key, None) or deque(maxlen=KEPT)
        runs.append(log(event.pace_s))
        self._runs[key] = runs
        if len(self._runs) > MOST_SERIES:
            del self._runs[next(iter(self._runs))]

    def usual(self, series: str, *, has_work: bool) -> UsualPace | None:
        """Return the usual pace; None with too few runs."""
        runs = self._runs.get((series, has_work), ())
        if len(runs) < LEAST:
            return None
        level = median(runs)
        spread = TO_SIGMA * median(abs(run - level) for run in runs)
        return UsualPace(level, max(spread, LEAST_SPREAD), len(runs))
