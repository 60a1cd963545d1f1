from __future__ import annotations

import math

from services.placement.core.pool.state import Pool
from tests.services.placement.core.lane import job, lane


def test_a_pool_without_settings_has_defaults() -> None:
    pool = Pool(0)
    assert (pool.name, pool.time_scale) == ("", 1.0)
    assert not pool.is_ranked and pool.largest_victim_gpus == math.inf


def test_the_first_change_counts_from_the_moment_at_which_a_job_waits() -> None:
    pool = Pool(0)
    pool.touch(10)
    pool.touch(20)
    assert (pool.first_change, pool.last_change) == (20, 20)


def test_only_an_elastic_job_below_its_most_workers_can_grow() -> None:
    pool = lane("a", gpus=2)
    pool.run(job("e", 1, workers=1, elastic={"min_workers": 1, "max_workers": 2}))
    assert [running.job_id for running in pool.state.running_elastic()] == ["e"]
    assert pool.state.can_grow() == (len(pool.job("e").allocations) < 2)
    pool.submit(job("w", 4))
    assert not pool.state.can_grow()


def test_jobs_in_backoff_are_a_class_of_their_own() -> None:
    pool = lane()
    pool.submit(job("a", 1), job("b", 1))
    state = pool.state
    assert state.equivalence_class(pool.job("a")) == state.equivalence_class(pool.job("b"))
    pool.job("a").not_before = 5
    assert state.equivalence_class(pool.job("a")).alone == "a"
