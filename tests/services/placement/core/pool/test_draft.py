from __future__ import annotations

from services.placement.core.pool.draft import Draft, are_free
from services.placement.core.pool.shape import GPU, Slot
from tests.services.placement.core.lane import lane


def slot(*gpus: int, node: str = "a") -> Slot:
    return Slot(node, gpus, GPU, 0, 0)


def test_a_draft_leaves_the_board_as_it_was() -> None:
    board = lane("a").state.board
    with Draft(board) as draft:
        draft.take([slot(0, 1)])
        assert board.free_of(()) == 6
    assert board.free_of(()) == 8 and board.nodes["a"].free == [GPU] * 8


def test_all_slots_are_taken_or_none() -> None:
    board = lane("a").state.board
    with Draft(board) as draft:
        assert draft.take_all([slot(0), slot(1)])
        assert not draft.take_all([slot(2), slot(1)])
        assert board.nodes["a"].free[:3] == [0, 0, GPU]


def test_what_is_free_of_a_slot_is_reserved() -> None:
    board = lane("a").state.board
    with Draft(board) as draft:
        draft.take([slot(0)])
        reserved = draft.reserve([slot(0, 1)])
        assert [(part.gpus, part.milli) for part in reserved] == [((), GPU), ((0,), 0), ((1,), GPU)]
        assert board.free_of(()) == 6


def test_two_slots_on_one_gpu_are_not_free_together() -> None:
    board = lane("a").state.board
    assert are_free(board, [slot(0)]) and not are_free(board, [slot(0), slot(0)])
    assert not are_free(board, [slot(0, node="unknown")])
