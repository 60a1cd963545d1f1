"""The expected rest and the Gittins rank of one job at work, in one pass over its distribution."""

from __future__ import annotations

from itertools import accumulate
from operator import mul

from services.priority.core.history.distributions import BINS, VALUES, bin_of, bin_start_s

_VALUES_S: list[float] = VALUES.tolist()
_STEPS_S = [[value - bin_start_s(b) for value in _VALUES_S[b:]] for b in range(BINS)]
"""Service from the begin of each bin to the values of it and of those after it, s."""


def rest_of(p: list[float], attained_s: float) -> tuple[float, float]:
    """Return `mean_left_of` and `gittins_of`, bit for bit, in one pass at half their cost."""
    first = bin_of(attained_s)
    steps, chances = _STEPS_S[first], p[first:]
    ended = list(accumulate(chances))
    spent = list(accumulate(map(mul, chances, steps)))
    mass = ended[-1]
    mean_s = spent[-1] / mass if mass > 0.0 else attained_s + 1.0
    ranks = [
        (serviced + (mass - done) * step) / done
        for serviced, done, step in zip(spent, ended, steps, strict=True)
        if done > 0.0
    ]
    return mean_s, min(1e18, min(ranks, default=1e18))
