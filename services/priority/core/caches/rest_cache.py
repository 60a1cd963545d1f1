"""Expected rest and Gittins rank of each row of a table, kept until its attained bin changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from services.priority.core.history.distributions import BINS, Floats, bin_start_s

EDGES = np.array([bin_start_s(b) for b in range(1, BINS)], np.float64)
STALE = -1

ByAttained = Callable[[Floats, Floats], Floats]
"""Computes a number from distributions [n, BINS] and attained service in s [n]; while a later end
is possible it depends on the bin of what is attained alone."""


@dataclass(slots=True, eq=False)
class BinCache:
    """One such number per row."""

    bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """[rows]: the bin at which the row was computed; or `STALE`."""
    values: Floats = field(default_factory=lambda: np.zeros(0))

    def look_up(
        self, rows: NDArray[np.intp], attained_s: Floats, distributions: Floats, compute: ByAttained
    ) -> Floats:
        """Return the numbers of these rows, [n]; only those in another bin are computed."""
        if len(self.bins) != len(distributions):
            self.bins = np.full(len(distributions), STALE, np.int64)
            self.values = np.zeros(len(distributions))
        bins = EDGES.searchsorted(attained_s, side="right")
        stale = (self.bins[rows] != bins).nonzero()[0]
        if len(stale):
            again = rows[stale]
            chances = distributions[again]
            self.values[again] = compute(chances, attained_s[stale])
            self.bins[again] = np.where(chances[:, -1] > 0.0, bins[stale], STALE)
        values: Floats = self.values[rows]
        return values


@dataclass(slots=True, eq=False)
class RestCache:
    """Results of `expected` that can be computed again from the table: no part of the state."""

    left: BinCache = field(default_factory=BinCache)
    gittins: BinCache = field(default_factory=BinCache)

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the cache out of snapshots."""
        return (RestCache, ())

    def forget(self, row: int) -> None:
        """Make a row stale: its distribution may have changed."""
        for cache in (self.left, self.gittins):
            if row < len(cache.bins):
                cache.bins[row] = STALE
