"""Array forms of `history`'s scalar functions for jobs that have run for a while.

The results are bit for bit the same, as a test checks: sums go from the first bin to the last, and
bins that the scalars skip are added as zero.
"""

from __future__ import annotations

import numpy as np

from services.priority.core.history import (
    BINS,
    VALUES,
    Floats,
    bin_start_s,
    gittins_of,
    gittins_ranks,
    mean_left_of,
)
from services.priority.core.queue_view import QueueView

FEW = 12
"""Fewer jobs than this are faster by the scalar functions."""
_EDGES = np.array([bin_start_s(b) for b in range(1, BINS)], np.float64)
_LEVELS = np.array([bin_start_s(b) for b in range(BINS)], np.float64)
_BINS = np.arange(BINS)[:, None]


def left_s(view: QueueView) -> Floats:
    """Return the expected rest in s, [n]; that of idle jobs was computed when they stopped."""
    rest_s = view.left_kept_s.copy()
    working = np.flatnonzero(view.since_go_s > 0)
    rest_s[working] = mean_left(view.distributions[view.rows[working]], view.attained_s[working])
    return rest_s


def gittins_s(view: QueueView) -> Floats:
    """Return the Gittins rank in s, [n]; lower goes first."""
    rank_s = view.gittins_kept_s.copy()
    working = np.flatnonzero(view.since_go_s > 0)
    rank_s[working] = gittins(view.distributions[view.rows[working]], view.attained_s[working])
    return rank_s


def mean_left(p: Floats, attained_s: Floats) -> Floats:
    """Return `history.mean_left_s` of each row of `p` [n, BINS]."""
    if len(p) < FEW:
        pairs = zip(p.tolist(), attained_s.tolist(), strict=True)
        return np.array([mean_left_of(*pair) for pair in pairs], np.float64)
    chance, steps = _ahead(p, attained_s)
    mass = np.add.reduce(chance, axis=0)
    rest = np.add.reduce(chance * steps, axis=0)
    return np.divide(rest, mass, out=attained_s + 1.0, where=mass > 0.0)


def gittins(p: Floats, attained_s: Floats) -> Floats:
    """Return `history.gittins_s` of each row of `p` [n, BINS]."""
    if len(p) < FEW:
        pairs = zip(p.tolist(), attained_s.tolist(), strict=True)
        return np.array([gittins_of(*pair) for pair in pairs], np.float64)
    chance, steps = _ahead(p, attained_s)
    ended = np.add.accumulate(chance, axis=0)
    spent = np.add.accumulate(chance * steps, axis=0)
    return gittins_ranks(ended, spent, steps)


def _ahead(p: Floats, attained_s: Floats) -> tuple[Floats, Floats]:
    """Return per bin and job, [BINS, n]: its chance, 0 if past, and the service to its value."""
    first = np.searchsorted(_EDGES, attained_s, side="right")
    chance = np.where(first <= _BINS, p.T, 0.0)
    return chance, VALUES[:, None] - _LEVELS[first]
