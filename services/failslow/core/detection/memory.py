"""The last iterations of each series, and the reference level and noise that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from services.failslow.core.detection.limits import DetectionLimits
from services.failslow.core.detection.runs import Floats

Ints = NDArray[np.int64]
TO_SIGMA = 1.4826
"""Makes the median absolute deviation of a normal distribution its standard deviation."""
TREND_MARGIN = 1.8
"""Most by which the noise may exceed that of the differences of neighbours."""


@dataclass(slots=True)
class Memory:
    """Rings of the last iterations, [series, place]; a value that must not be used is NaN."""

    values: Floats
    """Logarithm of seconds per unit of work."""
    work: Floats
    """Logarithm of the work."""
    iteration: Ints
    seen: Ints
    """Iterations that have been added, [series]; the next one goes to `seen` modulo the length."""
    level: Floats
    noise: Floats
    support: Ints
    """Iterations behind `level`."""

    @classmethod
    def empty(cls, series: int, limits: DetectionLimits) -> Self:
        shape = (series, limits.history)
        return cls(
            values=np.full(shape, np.nan),
            work=np.zeros(shape),
            iteration=np.zeros(shape, np.int64),
            seen=np.zeros(series, np.int64),
            level=np.full(series, np.nan),
            noise=np.full(series, 0.05),
            support=np.zeros(series, np.int64),
        )

    def clear(self, row: int) -> None:
        self.values[row], self.level[row] = np.nan, np.nan
        self.seen[row], self.support[row], self.noise[row] = 0, 0, 0.05

    def add(self, rows: Ints, iteration: Ints, values: Floats, work: Floats) -> None:
        place = self.seen[rows] % self.values.shape[1]
        self.values[rows, place] = values
        self.work[rows, place] = work
        self.iteration[rows, place] = iteration
        self.seen[rows] += 1

    def last(self, row: int, count: int) -> tuple[Floats, Floats, Ints]:
        """Return values, work and iteration numbers of the last iterations, oldest first."""
        length = self.values.shape[1]
        count = min(count, length, int(self.seen[row]))
        places = np.arange(self.seen[row] - count, self.seen[row]) % length
        return self.values[row, places], self.work[row, places], self.iteration[row, places]

    def newest(self, rows: Ints, count: int) -> Floats:
        """Return the median of the last iterations of each series, relative to its level."""
        places = (self.seen[rows, None] - 1 - np.arange(count)) % self.values.shape[1]
        newest: Floats = np.median(self.values[rows[:, None], places], axis=1)
        return newest - self.level[rows]

    def forget_before(self, row: int, keep: int) -> None:
        """Forget all but the last `keep` iterations as a source of the reference."""
        length = self.values.shape[1]
        kept = np.arange(max(self.seen[row] - keep, 0), self.seen[row]) % length
        remaining = np.full(length, np.nan)
        remaining[kept] = self.values[row, kept]
        self.values[row] = remaining

    def refresh(self, rows: Ints, limits: DetectionLimits) -> None:
        """Set level and noise of these series from all but their newest iterations."""
        values = self.values[rows]
        gap = np.clip(self.seen[rows] - limits.least_reference, 0, limits.reference_gap)
        length = values.shape[1]
        age = (self.seen[rows, None] - 1 - np.arange(length)) % length
        ordered = np.sort(np.where(age < gap[:, None], np.nan, values), axis=1)
        level, count = _median(ordered)
        spread, _ = _median(np.sort(np.abs(ordered - level[:, None]), axis=1))
        steps, _ = _median(np.sort(np.abs(np.diff(values, axis=1)), axis=1))
        # Differences of neighbours know no trend, such as that of a warm-up.
        spread = np.minimum(spread, TREND_MARGIN * steps / np.sqrt(2))
        least = np.minimum(self.support[rows], limits.most_support)
        known = count >= np.maximum(least, limits.least_reference - 2)
        # A few iterations understate the noise often, and so would lead to false alarms.
        spread = np.maximum(TO_SIGMA * spread * (1 + 6 / np.maximum(count, 1)), limits.least_noise)
        self.level[rows] = np.where(known, level, self.level[rows])
        self.noise[rows] = np.where(known, spread, self.noise[rows])
        self.support[rows] = np.where(known, count, self.support[rows])


def _median(ordered: Floats) -> tuple[Floats, Ints]:
    """Return the median of each sorted row without its NaNs, and the number of its values."""
    count = np.count_nonzero(~np.isnan(ordered), axis=1)
    row = np.arange(len(ordered))
    high = ordered[row, np.minimum(count // 2, ordered.shape[1] - 1)]
    low = ordered[row, np.maximum((count - 1) // 2, 0)]
    return 0.5 * (low + high), count
