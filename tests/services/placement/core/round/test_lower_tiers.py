"""Spot and preemptible jobs of lower tiers yield once their guarantee is over."""

from __future__ import annotations

from services.placement.core.round.lower_tiers import LowerTiers
from tests.services.placement.core.lane import Lane, job, lane


def tiers_at(pool: Lane, after_ms: int) -> LowerTiers:
    return LowerTiers(pool.state.running, pool.state.tiers, pool.now + after_ms, 1.0)


def test_the_job_that_loses_least_yields_first() -> None:
    pool = lane("a")
    pool.run(job("old", 1), job("fixed", 1, preemptible=False))
    pool.run(job("new", 1), after_ms=10_000)
    old, fixed = pool.job("old"), pool.job("fixed")
    tiers = tiers_at(pool, 1_000)
    assert [each.job_id for each in tiers.jobs_of(old.tier)] == ["new", "old"]
    assert tiers.below(old.tier - 1) == [old.tier] and fixed.tier == old.tier
    assert tiers.below(old.tier) == []


def test_a_job_inside_its_guarantee_yields_when_that_is_over() -> None:
    pool = lane("a")
    pool.run(job("x", 1, guaranteed_s=60.0))
    x = pool.job("x")
    inside = tiers_at(pool, 59_999)
    assert inside.below(x.tier - 1) == []
    assert inside.guarantee_ends(x.tier - 1) == [x.started_at + 60_000]
    after = tiers_at(pool, 60_000)
    assert after.below(x.tier - 1) == [x.tier] and after.guarantee_ends(x.tier - 1) == []
