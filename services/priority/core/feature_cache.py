"""What networks see of each row of a table, kept from ranking to ranking until it changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

CacheKey: TypeAlias = tuple[float, float, bool]

STALE = 127


@dataclass(slots=True, eq=False)
class FeatureCache:
    """Nothing but what `features` computes of the table anew: no part of a state."""

    by: CacheKey | None = None
    """Capacity, time scale, by history: others make all stale."""
    columns: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """[rows, F]"""
    service: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """[rows]: a job's part in the context."""
    marks: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    """[rows]: the bin of service that the row was seen in, see `features.marks_of`; or `STALE`."""

    def __reduce__(self) -> tuple[object, ...]:
        """No snapshot holds it."""
        return (FeatureCache, ())

    def forget(self, row: int) -> None:
        """The row changes."""
        if row < len(self.marks):
            self.marks[row] = STALE

    def begin(self, by: CacheKey, rows: int, width: int) -> None:
        """Room for all rows; whatever was seen in another way is forgotten."""
        if self.by == by and len(self.marks) == rows:
            return
        self.by = by
        self.columns = np.zeros((rows, width), np.float32)
        self.service = np.zeros(rows)
        self.marks = np.full(rows, STALE, np.int8)
