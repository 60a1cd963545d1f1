"""Run-time history over arrays of codes: `History.learn` and `History.estimate`."""

from __future__ import annotations

import numpy as np

from services.priority.core.history import FADE, LEVELS, TRUST
from simulator.kernel import keys
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Floats, Ints

_FADE = np.array(FADE)
_TRUST = np.array(TRUST)


@compiled
def learn_run_time(groups: Ints, counts: Floats, run_s: float) -> None:
    """Add one run time of a job with these `groups` [LEVELS]."""
    at = keys.bin_of(run_s)
    for level in range(LEVELS):
        if groups[level] >= 0:
            keys.learn(counts[groups[level]], at, _FADE[level])


@compiled
def fill_distribution(groups: Ints, counts: Floats, p: Floats) -> None:
    """Fill the distribution `p` [BINS] of a job with these `groups` [LEVELS]."""
    keys.start(p)
    for level in range(LEVELS):
        if groups[level] >= 0:
            keys.shrink(counts[groups[level]], _TRUST[level], p)
