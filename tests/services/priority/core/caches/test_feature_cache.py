"""The cache of features by row."""

from __future__ import annotations

import pickle

from services.priority.core.caches.feature_cache import STALE, FeatureCache, FeatureKey

KEY: FeatureKey = (8.0, 1.0, True)


def a_cache() -> FeatureCache:
    cache = FeatureCache()
    cache.begin(KEY, rows=4, width=2)
    cache.marks[:] = 3
    return cache


def test_a_changed_row_is_stale_and_the_others_are_not() -> None:
    cache = a_cache()
    cache.forget(2)
    assert cache.marks.tolist() == [3, 3, STALE, 3]
    cache.forget(99)
    assert len(cache.marks) == 4, "a row that was never cached is ignored"


def test_the_same_key_and_size_keep_the_rows() -> None:
    cache = a_cache()
    cache.begin(KEY, rows=4, width=2)
    assert cache.marks.tolist() == [3] * 4


def test_another_key_or_size_makes_all_rows_stale() -> None:
    for key, rows in (((9.0, 1.0, True), 4), (KEY, 5)):
        cache = a_cache()
        cache.begin(key, rows=rows, width=2)
        assert cache.marks.tolist() == [STALE] * rows


def test_a_snapshot_holds_no_features() -> None:
    assert pickle.loads(pickle.dumps(a_cache())).key is None
