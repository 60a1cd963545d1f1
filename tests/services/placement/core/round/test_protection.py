"""Residency, guarantee and the debt of a preemption protect a job; the longest of them counts."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from services.placement.core.pool.job import Job
from services.placement.core.round.progress import NEVER
from services.placement.core.round.protection import (
    ProgressRules,
    Protection,
    guarantee_end_ms,
    movable_from_ms,
    protected_ms,
    protected_until_ms,
    stop_price_s,
    stoppable,
    window_at,
)
from shared.contracts.job_spec import Simulated
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


PROGRESS = ProgressRules(checkpoint_window_ms=1_000, start_protection_ms=3_000, cheap_restarts=1)


def start_of(chance: Random, name: str) -> Job:
    """Return a job that runs, with any of the properties that protect it."""
    pool = lane("a")
    interval_s = chance.choice([None, 2.0, 7.0, 60.0])
    saves: dict[str, Any] = (
        {"checkpoint_cost_s": 1.0, "grace_s": 5.0} if chance.random() < 0.3 else {}
    )
    guaranteed_s = chance.choice([0.0, 12.0])
    pool.run(job(name, 1, checkpoint_interval_s=interval_s, guaranteed_s=guaranteed_s, **saves))
    running = pool.job(name)
    running.starts = chance.randrange(1, 5)
    running.debt_ms = chance.choice([0, 900, 8_000])
    running.resumes = running.debt_ms > 0
    return running


@pytest.mark.parametrize("seed", range(30))
def test_a_window_that_is_kept_says_what_a_new_one_would(seed: int) -> None:
    chance = Random(seed)
    kept = start_of(chance, "x")
    rules = [Protection(500, 1.0, PROGRESS), Protection(500, 2.0, PROGRESS), Protection(500, 1.0)]
    rule, now = rules[0], kept.started_at
    for _ in range(300):
        now += chance.choice([0, 1, 40, 700, 5_000])
        if chance.random() < 0.05:
            kept.checkpointed_ms = max(1, now - kept.started_at)
        if chance.random() < 0.05:
            rule = chance.choice(rules)
        assert stoppable(kept, rule, now) == stoppable(replace(kept, stop_window=None), rule, now)


def test_a_window_is_computed_once_for_the_time_that_it_covers() -> None:
    pool = lane("a")
    pool.run(job("x", 1, checkpoint_interval_s=60.0))
    x, rules = pool.job("x"), Protection(0, 1.0, PROGRESS)
    assert stoppable(x, rules, x.started_at + 4_000).at_ms == x.started_at + 60_000
    window = x.stop_window
    assert stoppable(x, rules, x.started_at + 62_000).at_ms == x.started_at + 62_000
    assert x.stop_window is window
    assert stoppable(x, rules, x.started_at + 63_001).at_ms == x.started_at + 120_000
    assert x.stop_window is not window


@pytest.mark.parametrize(("starts", "protected_s"), [(1, 3), (2, 3), (3, 6), (4, 12)])
def test_protection_doubles_with_each_start_after_the_cheap_ones(
    starts: int, protected_s: int
) -> None:
    pool = lane("a")
    pool.run(job("x", 1, checkpoint_interval_s=1.0))
    x, rules = pool.job("x"), Protection(0, 1.0, PROGRESS)
    x.starts = starts
    assert stoppable(x, rules, x.started_at).at_ms == x.started_at + protected_s * 1000


@pytest.mark.parametrize(("starts", "opens_s"), [(1, 3), (2, 121)])
def test_a_reported_checkpoint_of_a_later_start_counts_if_it_holds_the_least_work(
    starts: int, opens_s: int
) -> None:
    """Else the next one is waited for, for two intervals at most."""
    pool = lane("a")
    pool.run(job("x", 1, checkpoint_interval_s=60.0))
    x, progress = pool.job("x"), ProgressRules(10_000, 3_000, 1)
    x.starts, x.checkpointed_ms = starts, 1_000
    assert stoppable(x, Protection(0, 1.0, progress), x.started_at).at_ms == (
        x.started_at + opens_s * 1000
    )


@pytest.mark.parametrize(("after_s", "price_s"), [(65, 25.0), (60, 20.0), (30, 20.0)])
def test_a_stop_costs_the_restart_and_the_work_since_the_checkpoint(
    after_s: int, price_s: float
) -> None:
    """One that is protected would be stopped just after its next checkpoint."""
    pool = lane("a")
    simulated = Simulated(duration_s=600.0, restart_s=20.0)
    pool.run(job("x", 1, checkpoint_interval_s=60.0, simulated=simulated))
    x, progress = pool.job("x"), ProgressRules(10_000, 3_000, 1)
    now = x.started_at + after_s * 1000
    window = window_at(x, Protection(0, 1.0, progress), now)
    assert stop_price_s(x, window, now, 1.0) == price_s
    assert stop_price_s(x, window, now, 2.0) == 2.0 * price_s
