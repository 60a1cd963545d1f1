from __future__ import annotations

from services.placement.core.pool.shape import shape_of
from services.placement.core.pool.trial import Trial
from services.placement.core.round.reserve import (
    HeldPart,
    NodeOrder,
    part_of,
    reserve_freed,
    reserve_roomiest,
)
from services.placement.core.round.view import view_of
from tests.services.placement.core.lane import job, lane


def test_the_roomiest_nodes_are_reserved_as_far_as_they_are_free() -> None:
    pool = lane("a", "b")
    pool.run(job("x", 6))
    with Trial(pool.state.board) as trial:
        slots = reserve_roomiest(trial, shape_of(job("w", 8).spec), (), NodeOrder())
        assert {slot.node_id for slot in slots} == {"b"}
        assert pool.free("b") == [0] * 8


def test_nothing_is_reserved_for_a_gang_that_the_pool_could_never_hold() -> None:
    pool = lane("a")
    with Trial(pool.state.board) as trial:
        assert reserve_roomiest(trial, shape_of(job("w", 8, workers=2).spec), (), NodeOrder()) == []
        assert trial.log == []


def test_nodes_on_which_jobs_started_since_then_come_last() -> None:
    """`a` is the roomiest, but a job of it began later than all those of `b`."""
    pool = lane("a", "b")
    pool.run(job("y", 6), job("x", 5))
    first = {name: sum(n == 0 for n in pool.free(name)) for name in ("a", "b")}
    roomiest = min(first, key=first.__getitem__)
    (other,) = first.keys() - {roomiest}
    late = NodeOrder({roomiest: HeldPart({0})})
    with Trial(pool.state.board) as trial:
        slots = reserve_roomiest(trial, shape_of(job("w", 8).spec), (), NodeOrder())
        assert {slot.node_id for slot in slots} == {roomiest}
    with Trial(pool.state.board) as trial:
        slots = reserve_roomiest(trial, shape_of(job("w", 8).spec), (), late)
        assert {slot.node_id for slot in slots} == {other}
    with Trial(pool.state.board) as trial:
        slots = reserve_roomiest(trial, shape_of(job("w", 4).spec), (), late)
        assert {slot.node_id for slot in slots} == {roomiest}, "seven others are as early"


def test_the_freest_gpus_of_a_node_are_chosen() -> None:
    pool = lane("a", gpus=4)
    pool.run(job("x", 2))
    (slot,) = part_of(pool.state.board.nodes["a"], shape_of(job("w", 2).spec), 1)
    assert slot.gpus == (2, 3)


def test_a_job_without_victims_has_nothing_to_wait_for() -> None:
    pool = lane("a")
    pool.run(job("x", 8))
    pool.submit(job("w", 8))
    view = view_of(pool.state, pool.now)
    with Trial(pool.state.board) as trial:
        assert reserve_freed(view, trial, pool.job("w"), pool.job("w").shape) == []


def test_gpus_that_stopping_victims_give_back_are_reserved() -> None:
    pool = lane("a")
    pool.run(job("low", 6, priority_class="low"))
    pool.submit(job("high", 8, priority_class="high"), after_ms=1000)
    assert pool.job("low").makes_room_for == "high"
    view = view_of(pool.state, pool.now)
    with Trial(pool.state.board) as trial:
        slots = reserve_freed(view, trial, pool.job("high"), pool.job("high").shape)
        assert sum(slot.milli * len(slot.gpus) for slot in slots) == 2000
        assert pool.state.board.free_of(()) == 0
