"""The cost of a stop of each job of a workload: its checkpoint interval, and its restart.

No public trace has them. Jobs of one cluster save their work at very different intervals, and a
large gang takes longer to start again: more processes connect, and each loads its part of a larger
checkpoint.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.workload.draws import draw_normal

Floats = NDArray[np.float64]

STREAM = 1
"""Of `draws`; `fixed` has 0."""
SHORTEST_S, LONGEST_S = 60.0, 14_400.0
"""Bounds of what is drawn."""


def checkpoint_intervals_s(known_s: Floats, median_s: float, spread: float = 0.0) -> Floats:
    """Return the seconds between checkpoints [jobs], 0 for a job that makes none.

    `known_s` [jobs] is what the trace says, NaN where it says nothing: then the interval is drawn
    by the number of the job, log-normal around the median with `spread` as the standard deviation
    of the logarithm, in whole seconds. A spread of 0 gives each the median.
    """
    drawn_s = np.full(len(known_s), median_s)
    if median_s > 0.0 and spread > 0.0:
        drawn_s = np.rint(median_s * np.exp(spread * draw_normal(len(known_s), STREAM)))
        drawn_s = np.clip(drawn_s, min(SHORTEST_S, median_s), max(LONGEST_S, median_s))
    return np.where(np.isnan(known_s), drawn_s, known_s)


def restarts_s(gpus: Floats, restart_s: float, growth: float = 0.0) -> Floats:
    """Return the seconds of a restart [jobs]: `restart_s` for one GPU, more with the gang's size.

    They grow with the GPUs to the power of `growth`, in whole ms; 0: gangs restart alike. With
    1/3 a gang of 64 GPUs takes four times as long as a single one.
    """
    if growth == 0.0:
        return np.full(len(gpus), np.rint(restart_s * 1000.0) / 1000.0)
    grown_s = restart_s * np.maximum(gpus, 1.0) ** growth
    return np.asarray(np.rint(grown_s * 1000.0) / 1000.0, np.float64)
