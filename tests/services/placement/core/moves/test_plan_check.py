from __future__ import annotations

from services.placement.core.moves.plan_check import allowed_start, allowed_stop, fits
from services.placement.core.pool.allocations import allocations_of
from services.placement.core.pool.shape import GPU, MIB, Slot
from services.placement.core.round.view import view_of
from shared.contracts.placement import PlannedStart, PlannedStop
from tests.services.placement.core.lane import Lane, job, lane


def start(pool: Lane, *slots: Slot, attempt: int = 1) -> bool:
    planned = PlannedStart(job_id="w", attempt=attempt, allocations=allocations_of(slots))
    return allowed_start(pool.state, view_of(pool.state, pool.now), planned) is not None


def slot(*gpus: int) -> Slot:
    return Slot("a", gpus, GPU, 1000, MIB)


def test_a_start_holds_for_the_attempt_that_waits_and_for_free_slots() -> None:
    pool = lane("a")
    pool.run(job("x", 4))
    pool.submit(job("w", 8))
    assert start(pool, slot(4, 5))
    assert not start(pool, slot(3, 4))
    assert not start(pool, slot(4, 5), attempt=2)


def test_a_stop_holds_only_where_one_job_may_stop_the_other() -> None:
    pool = lane("a")
    pool.run(job("x", 8))
    pool.submit(job("same", 8), job("low", 8, priority_class="low"))
    view = view_of(pool.state, pool.now)
    for by in ("same", "low", "unknown"):
        assert allowed_stop(view, PlannedStop(job_id="x", attempt=1, by_job_id=by)) is None


def test_a_slot_must_be_exactly_one_worker_of_the_shape() -> None:
    pool = lane("a")
    pool.run(job("x", 2))
    board, shape = pool.state.board, pool.job("x").shape
    assert fits(board, shape, slot(4, 5))
    assert not fits(board, shape, slot(4)) and not fits(board, shape, slot(4, 4))
