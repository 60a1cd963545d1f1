"""Numbers drawn for jobs, by the number of each alone: any two engines draw the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""Constants of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""


def draw_uniform(jobs: int, stream: int = 0) -> Floats:
    """Return [jobs] in [0, 1); each stream is another sequence."""
    first = np.uint64((stream * FIRST) % 2**64)
    draws = (first + np.arange(jobs, dtype=np.uint64) + np.uint64(1)) * np.uint64(STEP)
    draws = (draws ^ (draws >> np.uint64(30))) * np.uint64(FIRST)
    draws = (draws ^ (draws >> np.uint64(27))) * np.uint64(SECOND)
    draws ^= draws >> np.uint64(31)
    uniform: Floats = (draws >> np.uint64(11)).astype(np.float64) / 2.0**53
    return uniform


def draw_normal(jobs: int, stream: int) -> Floats:
    """Return [jobs] of the standard normal distribution, from this stream and the next."""
    radius = np.sqrt(-2.0 * np.log(1.0 - draw_uniform(jobs, stream)))
    normal: Floats = radius * np.cos(2.0 * np.pi * draw_uniform(jobs, stream + 1))
    return normal
