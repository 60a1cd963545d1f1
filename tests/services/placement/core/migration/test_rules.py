from __future__ import annotations

from services.placement.core.migration.rules import fits
from services.placement.core.pool.shape import GPU, MIB, Slot
from tests.services.placement.core.lane import job, lane


def slot(*gpus: int) -> Slot:
    return Slot("a", gpus, GPU, 1000, MIB)


def test_a_slot_must_be_exactly_one_worker_of_the_shape() -> None:
    pool = lane("a")
    pool.run(job("x", 2))
    board, shape = pool.state.board, pool.job("x").shape
    assert fits(board, shape, slot(4, 5))
    assert not fits(board, shape, slot(4)) and not fits(board, shape, slot(4, 4))
