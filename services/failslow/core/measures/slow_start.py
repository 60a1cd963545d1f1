"""Jobs that are slow from their first iteration on, beside earlier runs of their series. Pure."""

from __future__ import annotations

import numpy as np

from services.failslow.core.detection.change import Change
from services.failslow.core.detection.detector import Detector
from services.failslow.core.measures.history import UsualPace

COMPARED_AFTER = 40
"""Iterations of training before a job is compared: the first ones warm up."""
COMPARED = 20
"""Newest iterations that are compared."""


def is_comparable(detector: Detector, row: int) -> bool:
    return bool(detector.memory.seen[row] >= COMPARED_AFTER)


def slow_since_start(detector: Detector, row: int, usual: UsualPace) -> Change | None:
    """Return the slowdown of a job that is slower than usual, and follow it until it recovers."""
    values, work, iteration = detector.memory.last(row, COMPARED_AFTER)
    newest = values[-COMPARED:][~np.isnan(values[-COMPARED:])]
    if detector.size[row] > 0 or not len(newest):
        return None
    level = float(np.median(newest))
    if not usual.is_exceeded_by(level):
        return None
    size = level - usual.level
    work_s = float(np.exp(np.median(work[-COMPARED:])))
    detector.resume(row, usual.level, size, work_s)
    return Change(
        row,
        "slow",
        int(iteration[0]),
        int(iteration[-1]),
        float(np.exp(size)),
        0.0,
        size / usual.spread,
        usual.level,
        len(values),
    )


def settled_level(detector: Detector, row: int, *, is_slow_since_start: bool) -> float | None:
    """Return the logarithm of the pace of a job that ends; None if it has hardly run.

    One that was slow from its start counts as it was: where all later runs are as slow, that is how
    the work is now. Of one that became slow the pace before counts.
    """
    memory = detector.memory
    if memory.seen[row] < COMPARED_AFTER or np.isnan(memory.level[row]):
        return None
    size = detector.size[row] if is_slow_since_start else 0.0
    return float(memory.level[row] + size)
