"""Run-time history over arrays of codes: `History.learn` and `History.estimate`."""

from __future__ import annotations

import numpy as np

from services.priority.core.history.distributions import CUT_SHORT_S, FADE, LEVELS, TRUST
from shared.contracts.pools import default_of
from simulator.kernel import keys
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Floats, Ints

_FADE = np.array(FADE)
_TRUST = np.array(TRUST)
GUARDS: bool = default_of("guard_predictions")
"""Whether failures at once teach nothing, as in a new pool."""


@compiled
def is_cut_short(guards: bool, failed: bool, run_s: float) -> bool:
    """Return whether the end says nothing of the run time, unless it was predicted to be shorter:
    see `services/priority/core/teaching.py`.
    """
    return guards and failed and run_s < CUT_SHORT_S


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
