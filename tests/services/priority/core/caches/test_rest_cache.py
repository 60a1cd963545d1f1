"""Numbers by attained bin are kept per row and computed again only where the bin differs."""

from __future__ import annotations

import pickle

import numpy as np

from services.priority.core.caches.rest_cache import BinCache, RestCache
from services.priority.core.history.distributions import BINS, PRIOR, Floats
from services.priority.core.policies import expected


class Counted:
    """`expected.mean_left`, with the number of rows of each call."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, p: Floats, attained_s: Floats) -> Floats:
        self.calls.append(len(p))
        return expected.mean_left(p, attained_s)


def test_a_row_is_computed_again_only_in_another_bin() -> None:
    cache, compute = BinCache(), Counted()
    p, rows = np.tile(PRIOR, (4, 1)), np.array([3, 1], np.intp)
    for attained_s in ([5.0, 100.0], [5.1, 101.0], [5.2, 150.0], [9.0, 151.0]):
        at = np.array(attained_s)
        kept = cache.look_up(rows, at, p, compute)
        assert kept.tolist() == expected.mean_left(p[rows], at).tolist()
    assert compute.calls == [2, 1, 1]


def test_a_forgotten_row_is_computed_again() -> None:
    cache, rows, at = RestCache(), np.array([0], np.intp), np.array([5.0])
    p = np.tile(PRIOR, (1, 1))
    before = cache.left.look_up(rows, at, p, expected.mean_left)
    p[0] = PRIOR[::-1]
    assert cache.left.look_up(rows, at, p, expected.mean_left).tolist() == before.tolist()
    cache.forget(0)
    cache.forget(7)
    after = cache.left.look_up(rows, at, p, expected.mean_left)
    assert after.tolist() == expected.mean_left(p, at).tolist() != before.tolist()


def test_a_number_that_depends_on_more_than_the_bin_is_not_kept() -> None:
    cache, rows = BinCache(), np.array([0], np.intp)
    p = np.zeros((1, BINS))
    p[0, 3] = 1.0
    for attained_s in (100.0, 100.5):
        left = cache.look_up(rows, np.array([attained_s]), p, expected.mean_left)
        assert left.tolist() == [attained_s + 1.0]


def test_a_grown_table_begins_anew() -> None:
    cache, rows, at = BinCache(), np.array([0], np.intp), np.array([5.0])
    for count in (1, 2):
        p = np.tile(PRIOR, (count, 1))
        left = cache.look_up(rows, at, p, expected.mean_left)
        assert left.tolist() == expected.mean_left(p[:1], at).tolist()
    assert len(cache.bins) == 2


def test_snapshots_do_not_hold_the_cache() -> None:
    cache = RestCache()
    cache.left.look_up(
        np.array([0], np.intp), np.array([5.0]), np.tile(PRIOR, (1, 1)), expected.mean_left
    )
    assert len(pickle.loads(pickle.dumps(cache)).left.bins) == 0
