"""The heuristics of Decima's evaluation on open jobs by hand."""

from __future__ import annotations

import pytest

from simulator.stage_dags.picks import (
    critical_path,
    critical_stage,
    fifo,
    shares,
    sjf_cp,
    weighted_fair,
)
from simulator.stage_dags.world import Choice, OpenJob, Situation
from tests.simulator.stage_dags.stage_samples import job, plain


def opened() -> tuple[OpenJob, OpenJob]:
    """Return a job of 100 s of work, and one of 25 s with two branches."""
    large = OpenJob(0, job(plain(10)))
    small = OpenJob(1, job(plain(1, 4.0), plain(1, 6.0), plain(3, 5.0, (0, 1))))
    return large, small


def test_first_in_first_out_takes_stages_in_their_order() -> None:
    large, small = opened()
    assert fifo(Situation([small, large], 8, 8)) == Choice(small, 0, 8)


def test_the_job_with_the_least_work_goes_first_on_its_critical_path() -> None:
    large, small = opened()
    assert sjf_cp(Situation([large, small], 8, 8)) == Choice(small, 1, 8)
    assert critical_stage(small) == 1


def test_the_longest_critical_path_goes_first() -> None:
    large, small = opened()
    assert critical_path(Situation([small, large], 8, 8)) == Choice(large, 0, 8)


def test_shares_follow_a_power_of_the_work() -> None:
    jobs = opened()
    assert shares(jobs, 10, 0.0) == [5.0, 5.0]
    assert shares(jobs, 10, 1.0) == [8.0, 2.0]
    assert shares(jobs, 10, -1.0) == pytest.approx([2.0, 8.0])


def test_free_executors_go_where_the_least_of_a_share_is_used() -> None:
    large, small = opened()
    large.working = 1
    assert weighted_fair(0.0, False)(Situation([large, small], 10, 9)) == Choice(small, 1, 5)


def test_an_executor_stays_at_its_job_up_to_the_share() -> None:
    large, small = opened()
    large.working, large.idle = 1, 1
    fair = weighted_fair(0.0, False)
    assert fair(Situation([large, small], 10, 9)) == Choice(large, 0, 5)
    large.working = 5
    assert fair(Situation([large, small], 10, 5)) == Choice(small, 1, 5)


def test_executors_beyond_all_shares_are_idle_or_used_one_by_one() -> None:
    large, small = opened()
    large.working, small.working = 5, 5
    situation = Situation([large, small], 11, 1)
    large.working, small.working = 6, 6
    assert weighted_fair(0.0, conserves=False)(situation) is None
    assert weighted_fair(0.0, conserves=True)(situation) == Choice(large, 0, 7)
