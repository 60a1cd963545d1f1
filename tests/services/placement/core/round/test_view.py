from __future__ import annotations

from services.placement.core.round.view import BASE_ORDER, RANK_FRESH_MS, scan_of, view_of
from tests.services.placement.core.lane import job, lane


def test_ranks_that_are_too_old_are_left_out() -> None:
    pool = lane(rank_ms=1000)
    pool.submit(job("a", 1), job("b", 1))
    pool.rank("b", "a")
    fresh = view_of(pool.state, pool.now + RANK_FRESH_MS - 1)
    stale = view_of(pool.state, pool.now + RANK_FRESH_MS)
    assert list(scan_of(fresh)) == ["b", "a"] and fresh.order == "fair_share"
    assert list(scan_of(stale)) == ["a", "b"] and stale.order == BASE_ORDER
    assert stale.ranks_stale and stale.ranks_age_s == RANK_FRESH_MS / 1000


def test_a_job_with_a_reservation_is_first_in_the_scan() -> None:
    pool = lane()
    pool.submit(job("a", 1), job("b", 1))
    pool.state.reservations["b"] = {}
    assert list(scan_of(view_of(pool.state, pool.now))) == ["b", "a"]


def test_the_overdue_job_waited_longest_of_the_highest_class() -> None:
    pool = lane(reserve_after_s=10.0)
    pool.submit(job("low", 1, priority_class="low"))
    pool.submit(job("first", 1), after_ms=10)
    pool.submit(job("second", 1), after_ms=10)
    assert view_of(pool.state, pool.now + 9_000).overdue.job_id == ""
    assert view_of(pool.state, pool.now + 10_000).overdue.job_id == "first"


def test_rules_by_rank_exist_only_where_rank_may_stop_jobs() -> None:
    assert view_of(lane().state, 0).rank_rules is None
    rules = view_of(lane(preemption="ranked", defragment_after_s=60.0).state, 0).rank_rules
    assert rules is not None and rules.defragment_after_ms == 60_000


def test_the_overdue_job_is_noted_with_the_round_from_which_gpus_are_reserved() -> None:
    pool = lane("n1", gpus=8, time_scale=1000.0, reserve_after_s=300.0, guard_predictions=True)
    pool.run(job("x", 4), job("big", 8))
    assert view_of(pool.state, pool.now).overdue.from_ms is None, "it has not waited long enough"
    pool.submit(job("small", 2), after_ms=1000)
    first = pool.now
    pool.submit(job("other", 2), after_ms=1000)
    view = view_of(pool.state, pool.now)
    assert (view.overdue.job_id, view.overdue.from_ms) == ("big", first)


def test_a_pool_of_an_earlier_release_keeps_to_no_nodes() -> None:
    pool = lane("n1", gpus=8, time_scale=1000.0, reserve_after_s=300.0)
    pool.run(job("x", 4), job("big", 8))
    pool.submit(job("small", 2), after_ms=1000)
    view = view_of(pool.state, pool.now)
    assert (view.overdue.job_id, view.overdue.from_ms, view.guards_estimates) == (
        "big",
        None,
        False,
    )
