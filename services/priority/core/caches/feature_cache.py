"""Features of each row of a table, kept from ranking to ranking until the row changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FeatureKey: TypeAlias = tuple[float, float, bool]
"""Capacity, time scale, by history: another key makes all rows stale."""

STALE = 127


@dataclass(slots=True, eq=False)
class FeatureCache:
    """Results of `features` that can be computed again from the table: no part of the state."""

    key: FeatureKey | None = None
    columns: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """[rows, F]"""
    service: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """[rows]: a job's part in the context."""
    marks: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    """[rows]: the bin of service at which the row was computed, see `marks_of`; or `STALE`."""

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the cache out of snapshots."""
        return (FeatureCache, ())

    def forget(self, row: int) -> None:
        """Make a row stale."""
        if row < len(self.marks):
            self.marks[row] = STALE

    def begin(self, key: FeatureKey, rows: int, width: int) -> None:
        """Make room for all rows, and start anew under another key."""
        if self.key == key and len(self.marks) == rows:
            return
        self.key = key
        self.columns = np.zeros((rows, width), np.float32)
        self.service = np.zeros(rows)
        self.marks = np.full(rows, STALE, np.int8)
