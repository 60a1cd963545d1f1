from __future__ import annotations

import pytest

from services.placement.core.pool.trial import Trial
from services.placement.core.resize.elastic import elastic_jobs
from services.placement.core.resize.grow import extra_slots, is_worth_it, left_s
from services.placement.core.round.view import view_of
from tests.services.placement.core.lane import Lane, job, lane


def elastic(walltime_s: float | None) -> Lane:
    pool = lane("a", gpus=2)
    elastic = {"min_workers": 1, "max_workers": 4}
    pool.run(job("e", 1, elastic=elastic, walltime_s=walltime_s))
    pool.node("b", 4)
    return pool


def test_the_rest_of_a_job_follows_from_its_walltime_or_half_of_it_is_done() -> None:
    pool = elastic(1000)
    now = pool.job("e").started_at + 100_000
    workers = len(pool.job("e").allocations)
    assert left_s(view_of(pool.state, now), pool.job("e")) == 1000 / workers - 100
    assert left_s(view_of(pool.state, now + 2_000_000), pool.job("e")) == 2100
    unknown = elastic(None)
    assert left_s(view_of(unknown.state, unknown.job("e").started_at + 7000), unknown.job("e")) == 7


@pytest.mark.parametrize(("walltime_s", "is_worth"), [(100_000, True), (100, False)])
def test_growth_must_save_more_than_the_restart_costs(walltime_s: float, is_worth: bool) -> None:
    pool = elastic(walltime_s)
    now = pool.job("e").started_at + 1000
    (elastic_job,) = elastic_jobs(pool.state, now)
    assert is_worth_it(view_of(pool.state, now), elastic_job, 2) == is_worth


def test_extra_workers_go_to_nodes_no_slower_than_its_own() -> None:
    pool = elastic(1000)
    board, (running,) = pool.state.board, elastic_jobs(pool.state, pool.now)
    with Trial(board) as trial:
        assert [slot.node_id for slot in extra_slots(trial, running)] == ["b", "b"]
    board.suspect("b", "f", 2.0, None)
    with Trial(board) as trial:
        assert extra_slots(trial, running) == []
