from __future__ import annotations

from services.placement.core.pool.shape import GPU
from services.placement.core.solver.instance import Instance, NextWorker
from services.placement.core.solver.objective import (
    FRAGMENT,
    HALVES_EVERY,
    HEAD,
    LEAST,
    LOST_MOST,
    ROOM,
    NodeRemainder,
    at_speed,
    fragments,
    room,
    size_milli,
    stop_price,
    weight,
)


def test_the_weight_halves_every_eight_places_down_to_the_least() -> None:
    assert weight(0) == HEAD
    assert weight(HALVES_EVERY) == HEAD // 2
    assert weight(10_000) == LEAST
    assert all(weight(place) >= weight(place + 1) for place in range(100))


def test_a_worker_without_gpus_counts_as_an_eighth() -> None:
    assert (size_milli(0, GPU), size_milli(2, GPU)) == (125, 2 * GPU)


def test_the_price_of_lost_work_grows_with_size_and_is_capped() -> None:
    assert stop_price(2 * GPU, 1800) == 2 * stop_price(GPU, 1800)
    assert stop_price(GPU, 1e9) == LOST_MOST


def test_a_value_falls_with_the_speed() -> None:
    assert at_speed(1000, GPU // 2) == 500


def test_a_partly_used_node_and_opened_gpus_are_fragments() -> None:
    assert fragments(NodeRemainder(8, 8, 0, 0, 0)) == 0 == fragments(NodeRemainder(8, 0, 0, 0, 0))
    assert fragments(NodeRemainder(8, 3, 2, 0, 0)) == 3 * FRAGMENT


def test_room_for_the_next_worker_is_worth_something_only_if_all_of_it_fits() -> None:
    instance = Instance((), (), next_worker=NextWorker(4, 1000, 0))
    assert room(instance, NodeRemainder(8, 4, 0, 1000, 0)) == ROOM
    assert room(instance, NodeRemainder(8, 4, 0, 999, 0)) == 0
    assert room(Instance((), ()), NodeRemainder(8, 8, 0, 9999, 0)) == 0
