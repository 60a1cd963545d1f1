from __future__ import annotations

from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.trial import Trial
from services.placement.core.resize.elastic import elastic_jobs
from services.placement.core.resize.shrink import (
    Shrinking,
    keep_order,
    least_resizes,
    shrink,
    shrinkable,
    would_start,
)
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import view_of
from tests.services.placement.core.lane import Lane, job, lane


def full() -> Lane:
    pool = lane("a", "b")
    pool.run(job("e", 1, elastic={"min_workers": 2, "max_workers": 12}))
    return pool


def test_workers_on_the_least_used_nodes_are_released_first() -> None:
    order = [slot.node_id for slot in keep_order(slots_by_rank(full().job("e")))]
    assert len(order) == 12 and order == sorted(order, key=order.count, reverse=True)
    assert order.count(order[0]) > order.count(order[-1])


def test_a_job_in_its_residency_does_not_shrink() -> None:
    pool = full()
    pool.submit(job("w", 8))
    (elastic,) = elastic_jobs(pool.state, pool.now)
    assert elastic.movable_ms > pool.job("e").started_at
    assert shrinkable([elastic], elastic.movable_ms - 1, pool.job("w")) == []
    assert shrinkable([elastic], elastic.movable_ms, pool.job("w")) == [elastic]


def test_a_job_shrinks_no_more_than_is_needed_and_the_draft_stays_as_it_was() -> None:
    pool = full()
    pool.submit(job("w", 8, preemptible=False))
    shrinking = Shrinking(*elastic_jobs(pool.state, pool.now))
    with Trial(pool.state.board) as trial:
        assert len(shrinking.released()) == 10
        assert would_start(trial, pool.job("w"), [shrinking])
        (resize,) = least_resizes(trial, pool.job("w"), [shrinking])
        assert trial.log == []
    assert {slot.node_id for slot in resize.slots} == {"a"} and len(resize.slots) == 8
    assert resize.by is pool.job("w")


def test_no_job_shrinks_for_one_that_measures_another_one() -> None:
    for measures, resized in ((None, 1), ("other", 0)):
        pool = full()
        made = job("w", 8, preemptible=False)
        spec = made.spec.model_copy(update={"measures": measures})
        pool.submit(made.model_copy(update={"spec": spec}))
        (elastic,) = elastic_jobs(pool.state, pool.now)
        view, plan = view_of(pool.state, elastic.movable_ms), Plan(waiting=1)
        plan.first_blocked = pool.job("w")
        with Trial(pool.state.board) as trial:
            shrink([elastic], view, trial, plan)
        assert len(plan.resizes) == resized
