"""Jobs that may not be preempted: a share of them, drawn by their number alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""Constants of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""


def draw_fixed(jobs: int, share: float) -> NDArray[np.bool_]:
    """Return [jobs], whether each may not be preempted; a larger share keeps those of a smaller."""
    if share <= 0.0:
        return np.zeros(jobs, np.bool_)
    draws = (np.arange(jobs, dtype=np.uint64) + np.uint64(1)) * np.uint64(STEP)
    draws = (draws ^ (draws >> np.uint64(30))) * np.uint64(FIRST)
    draws = (draws ^ (draws >> np.uint64(27))) * np.uint64(SECOND)
    draws ^= draws >> np.uint64(31)
    chosen: NDArray[np.bool_] = (draws >> np.uint64(11)).astype(np.float64) / 2.0**53 < share
    return chosen
