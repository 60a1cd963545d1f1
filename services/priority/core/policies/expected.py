"""Array forms of `distributions`'s scalar functions for jobs that have run for a while.

The results are bit for bit the same, as a test checks: sums go from the first bin to the last, and
bins that the scalars skip are added as zero.
"""

from __future__ import annotations

import numpy as np

from services.priority.core.caches.rest_cache import EDGES, BinCache, ByAttained
from services.priority.core.history.distributions import (
    BINS,
    VALUES,
    Floats,
    bin_start_s,
    gittins_of,
    gittins_ranks,
    mean_left_of,
)
from services.priority.core.queue.queue_view import QueueView

FEW = 12
"""Fewer jobs than this are faster by the scalar functions."""
_ENDS = np.append(EDGES, np.inf)
_LEVELS = np.array([bin_start_s(b) for b in range(BINS)], np.float64)
_BINS = np.arange(BINS)[:, None]


def left_s(view: QueueView) -> Floats:
    """Return the expected rest in s, [n]; that of idle jobs was computed when they stopped."""
    cache = view.rest_cache.left if view.rest_cache else None
    return _at_work(view, view.left_kept_s, mean_left, cache)


def gittins_s(view: QueueView) -> Floats:
    """Return the Gittins rank in s, [n]; lower goes first."""
    cache = view.rest_cache.gittins if view.rest_cache else None
    return _at_work(view, view.gittins_kept_s, gittins, cache)


def believed_left_s(view: QueueView) -> Floats:
    """Return `left_s`, but of running jobs that report their rest what is believed of that."""
    return unless_reported(view, left_s(view))


def believed_gittins_s(view: QueueView) -> Floats:
    """Return `gittins_s` likewise: the Gittins rank of a known rest is that rest."""
    return unless_reported(view, gittins_s(view))


def unless_reported(view: QueueView, rest_s: Floats) -> Floats:
    """Return the rest that is believed of running jobs that report it, of the others this one."""
    reported_s = view.believed_left_s
    return np.where(np.isnan(reported_s), rest_s, reported_s)


def holds_until(view: QueueView, now: int, by_bin: bool) -> Floats:
    """Return the ms before which a number of each job holds that depends on its attained bin.

    It is at most two ms too early, and `now` where `by_bin` is false or the job reports its rest:
    such a number may change at any moment.
    """
    if not by_bin:
        return np.full(len(view.rows), float(now))
    begun = view.go_ms > 0
    until = np.where(begun, float(now), np.inf)
    working = (begun & (view.since_go_s > 0)).nonzero()[0]
    attained_s = view.attained_s[working]
    next_s = _ENDS[EDGES.searchsorted(attained_s, side="right")] - attained_s
    is_known = view.distributions[view.rows[working], -1] > 0.0
    until[working] += np.where(
        is_known, np.maximum(0.0, next_s * 1000.0 / view.time_scale - 2.0), 0.0
    )
    return np.where(np.isnan(view.reported_left_s), until, float(now))


def _at_work(view: QueueView, idle: Floats, compute: ByAttained, cache: BinCache | None) -> Floats:
    """Return a number per job: `idle` where none works, the rest by what was attained."""
    working = (view.since_go_s > 0).nonzero()[0]
    if not len(working):
        return idle.copy()
    rows, attained_s = view.rows[working], view.attained_s[working]
    values = idle.copy()
    if cache is None:
        values[working] = compute(view.distributions[rows], attained_s)
    else:
        values[working] = cache.look_up(rows, attained_s, view.distributions, compute)
    return values


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
    first = np.searchsorted(EDGES, attained_s, side="right")
    chance = np.where(first <= _BINS, p.T, 0.0)
    return chance, VALUES[:, None] - _LEVELS[first]
