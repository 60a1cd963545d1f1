"""Distributions of run times, learnt from the jobs that ended.

Run times are counted in logarithmic bins, per group of similar jobs (all; the same GPUs; tenant;
user; name), and old samples fade. A new job's distribution shrinks each group's counts towards
that of the wider group (a chain of Dirichlet posteriors), so a user without history gets the
distribution of the tenant. From it follow quantiles, the expected rest of a job that has run for a
while, and its Gittins rank (Gittins 1989; Tiresias, NSDI '19): the least expected service per
chance of an end.

The functions use scalars and arrays only: the simulator's kernel compiles them.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Floats: TypeAlias = NDArray[np.float64]

BINS = 48
PER_OCTAVE = 2.0
"""Bin b holds run times from 2^(b/2) to 2^((b+1)/2) s: 1 s to 194 days."""

LEVELS = 9
"""Groups of a job, widest first: see `job_groups.groups`."""
FADE = (5000.0, 140.0, 1000.0, 150.0, 3.0, 8.0, 5.0, 60.0, 60.0)
"""Samples after which an old one counts 1/e, per level: the short ones follow what is run today."""
TRUST = (20.0, 45.0, 200.0, 50.0, 9.0, 3.0, 15.0, 40.0, 20.0)
"""Samples that the wider group's distribution is worth beside the level's own counts. No trace has
commands: the last one is from made-up jobs, see `docs/decisions/0111`."""

CUT_SHORT_S = 60.0
"""Cluster s; a job that failed or was cancelled earlier most likely did none of its work."""

VALUES: Floats = np.asarray(2.0 ** ((np.arange(BINS) + 0.5) / PER_OCTAVE), np.float64)
"""Run time that represents each bin, in s."""


def bin_of(run_s: float) -> int:
    """Return the bin of a run time in s."""
    if run_s <= 1.0:
        return 0
    return min(BINS - 1, int(math.log2(run_s) * PER_OCTAVE))


def add_sample(counts: Floats, at: int, fade: float) -> None:
    """Add a run time to the bin `at` of `counts` [BINS] and its neighbours; old ones fade."""
    keep = 1.0 - 1.0 / fade
    for b in range(BINS):
        counts[b] *= keep
    counts[at] += 0.5
    counts[max(0, at - 1)] += 0.25
    counts[min(BINS - 1, at + 1)] += 0.25


def shrink(counts: Floats, trust: float, p: Floats) -> None:
    """Turn the wider group's distribution `p` [BINS] into that of this group.

    Without samples `p` stays as it is, to the last bit: `History.estimate` skips such groups.
    """
    total = trust
    for b in range(BINS):
        total += counts[b]
    if total == trust:
        return
    for b in range(BINS):
        p[b] = (counts[b] + trust * p[b]) / total


def fill_prior(p: Floats) -> None:
    """Fill `p` with the prior: every bin from 1 s to a week is equally likely."""
    for b in range(BINS):
        p[b] = 1.0 / 40.0 if b < 40 else 1e-6


def bin_start_s(b: int) -> float:
    """Return the begin of bin b, in s.

    Ranks see a job's attained time in such steps only (as Tiresias' queues do), so that jobs do not
    overtake one another at every moment.
    """
    return 0.0 if b == 0 else 2.0 ** (b / PER_OCTAVE)


def mean_left_s(p: Floats, attained_s: float) -> float:
    """Return the expected rest, in s, of a job that has run for `attained_s`."""
    first = bin_of(attained_s)
    begun = bin_start_s(first)
    mass = 0.0
    left = 0.0
    for b in range(first, BINS):
        mass += p[b]
        left += p[b] * (VALUES[b] - begun)
    return left / mass if mass > 0.0 else attained_s + 1.0


def gittins_s(p: Floats, attained_s: float) -> float:
    """Return the least expected service per chance of an end within it, in s: lower goes first.

    min over D of E[min(S - a, D) | S > a] / P(S - a <= D | S > a), D at the bins' values.
    """
    return mean_left_and_gittins_s(p, attained_s)[1]


def mean_left_and_gittins_s(p: Floats, attained_s: float) -> tuple[float, float]:
    """Return `mean_left_s`, to the last bit, and `gittins_s` at the cost of the latter."""
    first = bin_of(attained_s)
    begun = bin_start_s(first)
    mass = 0.0
    for b in range(first, BINS):
        mass += p[b]
    best, ended, spent = 1e18, 0.0, 0.0
    for b in range(first, BINS):
        step = VALUES[b] - begun
        ended += p[b]
        spent += p[b] * step
        if ended > 0.0:
            best = min(best, (spent + (mass - ended) * step) / ended)
    return spent / mass if mass > 0.0 else attained_s + 1.0, best


def quantile_s(p: Floats, q: float) -> float:
    """Return the run time that a share `q` of such jobs does not exceed."""
    total = 0.0
    for b in range(BINS):
        total += p[b]
    ended = 0.0
    for b in range(BINS):
        ended += p[b]
        if ended >= q * total:
            return float(VALUES[b])
    return float(VALUES[BINS - 1])


def _over_floats(function: Callable[..., T]) -> Callable[..., T]:
    """Return the same code over a list of Python's floats: five times faster than over an array."""
    values = {**function.__globals__, "VALUES": VALUES.tolist()}
    return types.FunctionType(function.__code__, values, function.__name__)


mean_left_of = _over_floats(mean_left_s)
_mean_left_and_gittins_of = _over_floats(mean_left_and_gittins_s)


def gittins_of(p: list[float], attained_s: float) -> float:
    """Return `gittins_s` of a list."""
    return _mean_left_and_gittins_of(p, attained_s)[1]


PRIOR: Floats = np.zeros(BINS)
fill_prior(PRIOR)

SMOOTHED: Floats = np.diag(np.full(BINS, 0.5))
SMOOTHED += np.diag(np.full(BINS - 1, 0.25), 1) + np.diag(np.full(BINS - 1, 0.25), -1)
"""Counts that `add_sample` adds for each bin, without those beyond the first or the last."""


def gittins_ranks(ended: Floats, spent: Floats, steps: Floats) -> Floats:
    """Return `gittins_s` of distributions along the first axis, [BINS] or [BINS, n].

    `ended` and `spent` are running sums of the chances and of the expected service; `steps` is the
    service to each bin's value.
    """
    ranks = np.full_like(ended, 1e18)
    np.divide(spent + (ended[-1] - ended) * steps, ended, out=ranks, where=ended > 0.0)
    best: Floats = ranks.min(axis=0)
    return np.minimum(best, 1e18)
