from __future__ import annotations

from services.placement.core.moves.shrink import (
    first_blocked,
    release_order,
    shrinkable,
    would_start,
)
from services.placement.core.pool.draft import Draft
from services.placement.core.round.plan import Assignment, Plan
from services.placement.core.round.view import view_of
from tests.services.placement.core.lane import Lane, job, lane


def full() -> Lane:
    pool = lane("a", "b")
    pool.run(job("e", 1, elastic={"min_workers": 2, "max_workers": 12}))
    return pool


def test_workers_on_the_least_used_nodes_are_released_first() -> None:
    order = [slot.node_id for slot in release_order(full().job("e"))]
    assert len(order) == 12 and order == sorted(order, key=order.count, reverse=True)
    assert order.count(order[0]) > order.count(order[-1])


def test_the_first_job_that_the_plan_does_not_start_is_blocked() -> None:
    pool = lane()
    pool.submit(job("w", 8), job("v", 8))
    view = view_of(pool.state, pool.now)
    assert first_blocked(view, Plan()) is pool.job("w")
    starts_w = Plan(assignments=[Assignment(pool.job("w"), [], 0, 0)])
    assert first_blocked(view, starts_w) is pool.job("v")


def test_a_job_at_its_least_workers_or_in_its_residency_does_not_shrink() -> None:
    pool = full()
    pool.submit(job("w", 8))
    state = pool.state
    later = view_of(state, pool.now + 10**9)
    assert shrinkable(state, view_of(state, pool.job("e").started_at - 1), pool.job("w")) == []
    if pool.job("e").phase == "running":
        assert shrinkable(state, later, pool.job("w")) == [pool.job("e")]


def test_a_trial_leaves_the_draft_as_it_was() -> None:
    pool = full()
    pool.submit(job("w", 8, preemptible=False))
    with Draft(pool.state.board) as draft:
        assert would_start(draft, pool.job("w"), release_order(pool.job("e")))
        assert draft.log == []
