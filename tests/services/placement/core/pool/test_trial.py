from __future__ import annotations

from services.placement.core.pool.shape import GPU, Slot
from services.placement.core.pool.trial import Trial
from tests.services.placement.core.lane import lane


def slot(*gpus: int, node: str = "a") -> Slot:
    return Slot(node, gpus, GPU, 0, 0)


def test_a_draft_leaves_the_board_as_it_was() -> None:
    board = lane("a").state.board
    with Trial(board) as trial:
        trial.take([slot(0, 1)])
        assert board.free_of(()) == 6
    assert board.free_of(()) == 8 and board.nodes["a"].free == [GPU] * 8


def test_what_is_free_of_a_slot_is_reserved() -> None:
    board = lane("a").state.board
    with Trial(board) as trial:
        trial.take([slot(0)])
        reserved = trial.reserve([slot(0, 1)])
        assert [(part.gpus, part.milli) for part in reserved] == [((), GPU), ((0,), 0), ((1,), GPU)]
        assert board.free_of(()) == 6
