"""What history expects of jobs that have run for a while: arrays of `history`'s scalar functions.

Bit for bit what they give: sums go from the first bin to the last, and what they leave out is
added as zero. A test compares the two.
"""

from __future__ import annotations

import numpy as np

from services.priority.core.history import BINS, VALUES, bin_start_s, gittins_of, mean_left_of
from services.priority.core.queue_view import QueueView
from services.priority.core.table import Floats

FEW = 12
"""Below it the scalar functions are faster."""
_EDGES = np.array([bin_start_s(b) for b in range(1, BINS)], np.float64)
_LEVELS = np.array([bin_start_s(b) for b in range(BINS)], np.float64)
_BINS = np.arange(BINS)[:, None]


def left_s(view: QueueView) -> Floats:
    """Expected rest in s, [n]. For jobs that do not work it was known when they stopped."""
    found = view.left_kept_s.copy()
    working = np.flatnonzero(view.since_go_s > 0)
    found[working] = mean_left(view.distributions[view.rows[working]], view.attained_s[working])
    return found


def gittins_s(view: QueueView) -> Floats:
    """Gittins rank in s, [n], lower goes first."""
    found = view.gittins_kept_s.copy()
    working = np.flatnonzero(view.since_go_s > 0)
    found[working] = gittins(view.distributions[view.rows[working]], view.attained_s[working])
    return found


def mean_left(p: Floats, attained_s: Floats) -> Floats:
    """`history.mean_left_s` of each row of `p` [n, BINS]."""
    if len(p) < FEW:
        pairs = zip(p.tolist(), attained_s.tolist(), strict=True)
        return np.array([mean_left_of(q, a) for q, a in pairs], np.float64)
    chance, steps = _ahead(p, attained_s)
    mass = np.add.reduce(chance, axis=0)
    rest = np.add.reduce(chance * steps, axis=0)
    return np.divide(rest, mass, out=attained_s + 1.0, where=mass > 0.0)


def gittins(p: Floats, attained_s: Floats) -> Floats:
    """`history.gittins_s` of each row of `p` [n, BINS]."""
    if len(p) < FEW:
        pairs = zip(p.tolist(), attained_s.tolist(), strict=True)
        return np.array([gittins_of(q, a) for q, a in pairs], np.float64)
    chance, steps = _ahead(p, attained_s)
    ended = np.add.accumulate(chance, axis=0)
    spent = np.add.accumulate(chance * steps, axis=0)
    mass = ended[-1]
    ranks = np.full_like(ended, 1e18)
    np.divide(spent + (mass - ended) * steps, ended, out=ranks, where=ended > 0.0)
    best: Floats = ranks.min(axis=0)
    return np.minimum(best, 1e18)


def _ahead(p: Floats, attained_s: Floats) -> tuple[Floats, Floats]:
    """Per bin and job, [BINS, n]: its chance, 0 where it is past, and the service to its value."""
    first = np.searchsorted(_EDGES, attained_s, side="right")
    chance = np.where(first <= _BINS, p.T, 0.0)
    return chance, VALUES[:, None] - _LEVELS[first]
