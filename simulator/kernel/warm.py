"""What history would have learnt before a window begins: its jobs ran as soon as they came."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from services.priority.core.history import BINS, FADE, LEVELS
from simulator.kernel import keys
from simulator.kernel.work import Work

_FADE = np.array(FADE)


def learnt(work: Work, group_count: int | None = None) -> NDArray[np.float64]:
    """Counts [groups, BINS] after all jobs of `work`, in the order in which they would end."""
    counts = np.zeros((group_count or work.group_count, BINS))
    ends = work.submit_ms + work.duration_ms
    _learn(np.argsort(ends, kind="stable"), work.duration_ms, work.groups, counts)
    return counts


@njit(cache=True)
def _learn(order, duration_ms, groups, counts):
    for j in order:
        at = keys.bin_of(duration_ms[j] / 1000.0)
        for level in range(LEVELS):
            if groups[j, level] >= 0:
                keys.learn(counts[groups[j, level]], at, _FADE[level])
