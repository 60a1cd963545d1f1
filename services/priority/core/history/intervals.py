"""Quantiles of run times that cover what they claim, learnt from the jobs that ended.

History's distribution of a job is read at levels that follow its errors: adaptive conformal
inference (Gibbs and Candes 2021). A job that ended below the quantile that it was given moves that
level down, one that ended above moves it up, so that in the long run a tenth of the jobs end below
p10 and a tenth above p90, whatever drifts. Levels move on the scale of their log-odds, for the
pool and for the job's tenant together, by so little that a burst of equal jobs does not tip them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from services.priority.core.history.distributions import BINS, PER_OCTAVE, Floats

QUANTILES = (0.1, 0.5, 0.9)
LOG_ODDS = tuple(math.log(q / (1.0 - q)) for q in QUANTILES)
"""The same levels as log-odds."""
STEP = 0.0025
"""Step of the log-odds per job that ended, of the pool's levels and of the tenant's."""
FARTHEST = 6.5
"""Largest log-odds: levels stay within 0.0015 and 0.9985, where history has samples."""

Shifts = list[float]
UNSHIFTED = (0.0,) * len(QUANTILES)


class RunTimeInterval(NamedTuple):
    """Run times, in s, that a tenth, half and nine tenths of such jobs do not exceed."""

    p10_s: float
    p50_s: float
    p90_s: float


def bin_end_s(position: float) -> float:
    """Return the run time at a place on the scale of bins: 3.5 is the middle of bin 3."""
    return float(2.0 ** (position / PER_OCTAVE))


def read_quantile_s(ended: list[float], level: float) -> float:
    """Return the run time at a level of a distribution, given its running sum [BINS].

    Within a bin the logarithm of the run time is uniform, so that quantiles are no steps of 41 %.
    """
    target = level * ended[-1]
    at = min(bisect_left(ended, target), BINS - 1)
    before = ended[at - 1] if at else 0.0
    chance = ended[at] - before
    return bin_end_s(at + ((target - before) / chance if chance > 0.0 else 0.5))


def level_of(log_odds: float) -> float:
    """Return the level of bounded log-odds."""
    return 1.0 / (1.0 + math.exp(-max(-FARTHEST, min(FARTHEST, log_odds))))


@dataclass(slots=True)
class IntervalCalibration:
    """Shifts of the three levels, of one pool and of each of its tenants."""

    pool: Shifts = field(default_factory=lambda: [0.0] * len(QUANTILES))
    tenants: dict[str, Shifts] = field(default_factory=dict)

    def levels(self, tenant: str) -> tuple[float, ...]:
        """Return the levels at which a job of the tenant is read, in the order of `QUANTILES`."""
        own = self.tenants.get(tenant, UNSHIFTED)
        levels = [
            level_of(log_odds + pool + shift)
            for log_odds, pool, shift in zip(LOG_ODDS, self.pool, own, strict=True)
        ]
        levels.sort()
        return tuple(levels)

    def interval(self, tenant: str, p: Floats) -> RunTimeInterval:
        """Return the interval of a job with the distribution `p` [BINS] that has not run."""
        return self.read_interval(tenant, np.add.accumulate(p).tolist())

    def read_interval(self, tenant: str, ended: list[float]) -> RunTimeInterval:
        """Return `interval` of a distribution, given its running sum [BINS]."""
        return RunTimeInterval(*[read_quantile_s(ended, at) for at in self.levels(tenant)])

    def learn(self, tenant: str, interval: RunTimeInterval, ran_s: float) -> None:
        """Learn from a job that ended: the interval that it had, and its run time in s."""
        own = self.tenants.setdefault(tenant, [0.0] * len(QUANTILES))
        for shifts in (self.pool, own):
            follow(shifts, interval, ran_s, STEP, FARTHEST)


def follow(
    shifts: Shifts, interval: Sequence[float], true_s: float, step: float, farthest: float
) -> None:
    """Move the shift of each quantile a step up if the truth lies above it, else down, in place.

    A quantile of level q moves by q or 1 - q steps, so that in the long run a share q lies below.
    """
    for at, (level, bound_s) in enumerate(zip(QUANTILES, interval, strict=True)):
        moved = shifts[at] + step * (level - (1.0 if true_s <= bound_s else 0.0))
        shifts[at] = max(-farthest, min(farthest, moved))
