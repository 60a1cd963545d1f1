"""Residency, guarantee and the debt of a preemption protect a job; the longest of them counts."""

from __future__ import annotations

from services.placement.core.round.protection import (
    NEVER,
    guarantee_end_ms,
    movable_from_ms,
    protected_ms,
    protected_until_ms,
)
from tests.services.placement.core.lane import job, lane


def test_a_job_that_does_not_run_or_may_not_be_stopped_is_never_movable() -> None:
    pool = lane("a")
    pool.run(job("free", 1), job("fixed", 1, preemptible=False), job("spot", 1, spot=True))
    pool.submit(job("waits", 16))
    assert movable_from_ms(pool.job("fixed"), 60_000, 1.0) == NEVER
    assert movable_from_ms(pool.job("waits"), 60_000, 1.0) == NEVER
    for name in ("free", "spot"):
        assert movable_from_ms(pool.job(name), 60_000, 1.0) == pool.job(name).started_at + 60_000


def test_the_longest_protection_counts() -> None:
    pool = lane("a")
    pool.run(job("x", 1, guaranteed_s=120.0))
    x = pool.job("x")
    assert protected_until_ms(x, 60_000, 1.0) == x.started_at + 120_000
    assert protected_until_ms(x, 60_000, 10.0) == x.started_at + 60_000
    x.debt_ms = 200_000
    assert protected_ms(x, 60_000) == 200_000
    assert protected_until_ms(x, 60_000, 1.0) == x.started_at + 200_000


def test_a_guarantee_begins_with_the_start() -> None:
    pool = lane("a")
    pool.submit(job("x", 1, guaranteed_s=10.0), job("free", 1))
    assert guarantee_end_ms(pool.job("x"), 1.0) is None
    assert guarantee_end_ms(pool.job("free"), 1.0) == 0
    pool.ready("x")
    assert guarantee_end_ms(pool.job("x"), 2.0) == pool.job("x").started_at + 5_000
