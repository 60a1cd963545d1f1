from __future__ import annotations

from services.placement.core.pool.board import could_hold
from services.placement.core.pool.shape import Shape, shape_of
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import fits_now, place, probe_anywhere, too_few
from tests.services.placement.core.lane import Lane, job, lane


def shape(gpus: float, workers: int = 1) -> Shape:
    return shape_of(job("x", gpus, workers).spec)


def nodes_for(pool: Lane, needed: Shape, avoid: tuple[str, ...] = ()) -> list[str]:
    with Trial(pool.state.board) as trial:
        return [slot.node_id for slot in place(trial, needed, avoid)]


def pool() -> Lane:
    made = lane("a", "b")
    made.node("c", 4)
    return made


def test_a_job_goes_to_the_node_that_it_fills_best() -> None:
    assert nodes_for(pool(), shape(4)) == ["c"]
    assert nodes_for(pool(), shape(5)) == ["a"]


def test_a_gang_goes_to_as_few_nodes_as_possible() -> None:
    assert nodes_for(pool(), shape(4, 3)) == ["a", "a", "c"]


def test_nodes_to_avoid_are_left_out() -> None:
    assert nodes_for(pool(), shape(4), ("c",)) == ["a"]
    assert nodes_for(pool(), shape(8), ("a", "b")) == []


def test_shares_fill_a_gpu_before_another_is_opened() -> None:
    made = pool()
    made.run(job("s", 0.5))
    with Trial(made.state.board) as trial:
        (first,), (second,) = (place(trial, shape(0.5), ()) for _ in range(2))
    assert (first.node_id, first.gpus) == (made.nodes_of("s")[0], (0,))
    assert second.gpus != first.gpus


def test_a_gang_that_does_not_fit_leaves_the_draft_untouched() -> None:
    made = pool()
    with Trial(made.state.board) as trial:
        assert place(trial, shape(8, 3), ()) == [] == trial.log


def test_what_fits_now_and_what_could_ever_be_held_are_counted_in_workers() -> None:
    made = pool()
    made.run(job("x", 8))
    board = made.state.board
    assert fits_now(board, shape(8, 2)) == 1
    assert could_hold(board, shape(8, 2), ()) == 2
    assert could_hold(board, shape(8, 2), ("a",)) == 1
    assert too_few(board, shape(8, 2)) and not too_few(board, shape(4, 2))


def test_a_trial_counts_what_is_released_and_leaves_the_draft_as_it_was() -> None:
    made = lane("a", "b")
    made.run(job("x", 8), job("y", 8))
    waiting = made.job("x")
    released = [allocation.slot for allocation in made.job("y").allocations.values()]
    with Trial(made.state.board) as trial:
        assert probe_anywhere(trial, shape(8), waiting) == []
        assert probe_anywhere(trial, shape(8), waiting, released) == released
        waiting.avoid = (released[0].node_id,)
        assert probe_anywhere(trial, shape(8), waiting, released) == released
        assert trial.log == []
