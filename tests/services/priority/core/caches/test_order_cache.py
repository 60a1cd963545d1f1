"""The cached order of waiting jobs."""

from __future__ import annotations

import pickle

from services.priority.core.caches.order_cache import SORTED_MOST, STALE_MOST, OrderCache, Position
from shared.contracts.ranking import Ranked


def position(job_id: str, behind: float = 0.0, tier: float = 0.0) -> Position:
    return tier, behind, 0.0, job_id, Ranked(job_id=job_id, score=-behind)


def a_cache(*positions: Position) -> OrderCache:
    cache = OrderCache()
    cache.begin(("fcfs",), ())
    cache.insert(list(positions))
    return cache


def ids(cache: OrderCache) -> list[str]:
    return [job.job_id for job in cache.first()]


def test_jobs_are_ordered_by_tier_then_key_then_id() -> None:
    cache = a_cache(position("c", 1.0), position("d", 0.0, tier=1.0), position("b"), position("a"))
    assert ids(cache) == ["a", "b", "c", "d"]


def test_a_stale_job_loses_its_position_until_it_is_inserted_again() -> None:
    cache = a_cache(position("a"), position("b", 1.0))
    cache.mark("a")
    cache.drop_stale()
    assert ids(cache) == ["b"]
    cache.insert([position("a", 2.0)])
    assert ids(cache) == ["b", "a"]


def test_many_changes_give_the_same_order_as_few() -> None:
    names = [f"j{n:03d}" for n in range(2 * SORTED_MOST)]
    at_once, one_by_one = a_cache(*map(position, names)), a_cache()
    for name in reversed(names):
        one_by_one.insert([position(name)])
    assert at_once.order == one_by_one.order
    for cache in (at_once, one_by_one):
        for name in names[1:]:
            cache.mark(name)
        cache.drop_stale()
        assert ids(cache) == [names[0]]


def test_the_first_are_the_same_tuple_while_nothing_changes() -> None:
    cache = a_cache(position("a"))
    assert cache.first() is cache.first()


def test_too_many_stale_jobs_drop_the_cache() -> None:
    cache = a_cache(position("a"))
    for n in range(STALE_MOST + 1):
        cache.mark(f"j{n}")
    assert cache.key is None and cache.order == []


def test_a_snapshot_holds_no_order() -> None:
    assert pickle.loads(pickle.dumps(a_cache(position("a")))).order == []
