"""A day of a trace: its jobs, the nodes for its load, and one set of settings for every run."""

from __future__ import annotations

import pytest

from benchmarks.parts.live.day import DAY_S, Day, choose_day, pool_of, rules_of, scenario_of
from benchmarks.parts.policies.costs import StopCosts
from simulator.kernel.run import Rules
from simulator.workload.source import load

HALF_HOURLY = StopCosts(1800.0, 60.0)


def a_day(day: int = 0, longest_s: float = 8 * 3600.0, load_share: float = 0.9) -> Day:
    return choose_day("synthetic", day, longest_s, load_share, 300.0, HALF_HOURLY)


def test_the_jobs_are_those_of_the_day_that_are_short_enough() -> None:
    every, day = load("synthetic").jobs, a_day(longest_s=3600.0)
    low = every[0].submit_s
    submitted = [job for job in every if low <= job.submit_s < low + DAY_S and job.gpus > 0]
    assert [job.job_key for job in day.jobs] == [
        job.job_key for job in submitted if job.duration_s <= 3600.0
    ]
    assert day.left_out == len(submitted) - len(day.jobs) > 0


def test_the_nodes_are_nearest_to_the_load_and_hold_the_largest_gang() -> None:
    day = a_day()
    assert day.load == pytest.approx(0.9, abs=0.1)
    small = a_day(load_share=100.0)
    assert small.capacity_gpus >= max(job.gpus for job in small.jobs)


def test_a_day_without_such_jobs_is_refused_with_the_days_that_there_are() -> None:
    with pytest.raises(ValueError, match="day: 99, must be one of 0 to 5 of synthetic"):
        a_day(99)


def test_every_run_has_the_settings_of_the_live_pool() -> None:
    day = a_day()
    pool, deciders, rules = pool_of(day, "day"), scenario_of(day), rules_of(day)
    assert (pool.preemption, pool.preemption_protection) == ("ranked", "progress")
    assert pool.time_scale == deciders.pool.time_scale == 300.0
    shared = Rules.__dataclass_fields__.keys() & type(pool).model_fields.keys()
    both = shared - {"preemption", "runtime"}
    assert "loss_share" in both and "min_residency_s" in both
    for name in both:
        assert getattr(rules, name) == getattr(pool, name) == getattr(deciders.pool, name), name
    assert (rules.checkpoint_s, rules.restart_s) == (1800.0, 60.0)
    assert (deciders.checkpoint_s, deciders.restart_s) == (1800.0, 60.0)
    assert deciders.pool.round_ms == pool.round_ms and deciders.pool.rank_ms == pool.rank_ms
