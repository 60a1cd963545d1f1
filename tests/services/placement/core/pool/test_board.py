"""The board finds nodes by what is free on them."""

from __future__ import annotations

from services.placement.core.pool.board import Board
from services.placement.core.pool.shape import GPU, MIB, Shape, Slot
from tests.services.placement.core.pool.nodes import node


def board(**gpus: int) -> Board:
    made = Board()
    for name, count in gpus.items():
        made.nodes[name] = node(name, count)
        made.index(made.nodes[name])
    return made


def test_nodes_are_found_by_their_free_gpus_then_by_name() -> None:
    pool = board(c=4, a=8, b=8)
    assert list(pool.upward((), 4)) == ["c", "a", "b"]
    assert list(pool.downward((), 5)) == ["a", "b"]


def test_the_best_fit_holds_all_workers_with_least_over_else_it_is_the_roomiest_node() -> None:
    pool, worker = board(c=4, a=8, b=8), Shape(2, GPU, 0, 0, (), (), 1, 8)
    assert {slot.node_id for slot in pool.best_fit(worker, 2, ())} == {"c"}
    assert {slot.node_id for slot in pool.best_fit(worker, 2, ("c",))} == {"a"}
    assert len(pool.best_fit(worker, 8, ())) == 4
    assert pool.best_fit(worker._replace(gpus=9), 1, ()) == []


def test_the_best_fit_of_a_share_is_the_fullest_gpu_on_the_healthiest_node() -> None:
    pool, half = board(a=1, b=1, c=1), Shape(1, 500, 0, 0, (), (), 1, 1)
    for name in ("a", "b"):
        pool.shift(Slot(name, (0,), 500, 0, 0), -1)
    pool.suspect("a", "f1", 2.0, None)
    assert pool.best_fit(half, 1, ()) == [Slot("b", (0,), 500, 0, 0)]
    assert pool.best_fit(half, 1, ("b",)) == [Slot("a", (0,), 500, 0, 0)]
    assert pool.best_fit(half, 1, ("a", "b")) == [Slot("c", (0,), 500, 0, 0)]
    assert pool.best_fit(half, 1, ("a", "b", "c")) == []


def test_of_equal_nodes_the_healthiest_is_first() -> None:
    pool = board(a=8, b=8)
    pool.suspect("a", "f1", 2.0, None)
    assert pool.health("a") == 0.5
    assert list(pool.upward((), 8)) == ["b", "a"]
    pool.suspect("a", "f1", 1.0, None)
    assert pool.slow == {} and list(pool.upward((), 8)) == ["a", "b"]


def test_a_node_is_as_healthy_as_the_gpus_that_a_job_gets_of_it() -> None:
    pool = board(a=4, b=4)
    pool.suspect("a", "f1", 2.0, None, gpu=1)
    pool.suspect("b", "f2", 1.5, None)
    assert list(pool.upward((), 3)) == ["a", "b"]
    assert list(pool.upward((), 4)) == ["b", "a"]
    assert [pool.health_for("a", gpus) for gpus in (0, 3, 4, 5)] == [1.0, 1.0, 0.5, 0.5]
    assert pool.health("a", (0, 2)) == 1.0 and pool.health("a") == 0.5
    pool.shift(Slot("a", (0,), GPU, 0, 0), -1)
    assert pool.health_for("a", 3) == 0.5


def test_a_share_is_put_on_a_healthy_gpu_of_a_node_with_a_slow_one() -> None:
    pool, half = board(a=3), Shape(1, 500, 0, 0, (), (), 1, 1)
    for gpu in (0, 1):
        pool.shift(Slot("a", (gpu,), 500, 0, 0), -1)
    pool.suspect("a", "f1", 2.0, None, gpu=0)
    assert pool.best_fit(half, 1, ()) == [Slot("a", (1,), 500, 0, 0)]


def test_a_slot_that_is_taken_and_given_back_leaves_the_indexes_as_they_were() -> None:
    pool, untouched = board(a=8), board(a=8)
    slot = Slot("a", (0,), 250, 1000, MIB)
    pool.shift(slot, -1)
    assert pool.shares["a100"] == [(750, "a", 0)] and pool.free_of(()) == 7
    pool.shift(slot, 1)
    assert pool == untouched


def test_a_node_off_the_indexes_is_not_free() -> None:
    pool = board(a=8)
    slot = Slot("a", (0, 1), GPU, 0, 0)
    assert pool.are_free([slot])
    pool.unindex(pool.nodes["a"])
    assert not pool.are_free([slot]) and pool.gpus == 0 and list(pool.upward((), 0)) == []


def test_slots_are_free_together_only_where_their_sum_is() -> None:
    pool = board(a=2)
    gpu, half = Slot("a", (0,), GPU, 32_000, 0), Slot("a", (1,), 500, 1, 0)
    assert pool.are_free([gpu, half, half._replace(cpu_milli=31_999)])
    assert not pool.are_free([gpu, gpu])
    assert not pool.are_free([half, half, half])
    assert not pool.are_free([gpu, half, half._replace(cpu_milli=32_000)])
    assert not pool.are_free([gpu._replace(node_id="unknown")])
    assert not pool.are_free([gpu._replace(gpus=(2,))])
    pool.unindex(pool.nodes["a"])
    assert not pool.are_free([half])
