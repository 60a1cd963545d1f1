"""The choice of an upstream respects room, weights, loads and the prefix's own engine."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.throttle.upstreams.balance import (
    affinity,
    has_room,
    least_loaded,
    prefix_affine,
    two_choices,
)


@dataclass
class Engine:
    name: str
    weight: float = 1.0
    in_flight: int = 0
    max_requests: int = 1000
    drained: bool = False
    foreign: int = 0
    turn: float = 0.0


def engines(*weights: float) -> list[Engine]:
    return [Engine(f"e{index}", weight) for index, weight in enumerate(weights)]


def test_the_least_loaded_is_the_one_with_fewest_requests_per_weight() -> None:
    a, b = engines(1, 4)
    a.in_flight, b.in_flight = 2, 7
    assert least_loaded([a, b]) is b
    b.foreign = 2
    assert least_loaded([a, b]) is a


def test_equally_loaded_ones_take_turns() -> None:
    a, b = engines(1, 1)
    a.turn = 1.0
    assert least_loaded([a, b]) is b
    b.turn = 1.0
    assert least_loaded([b, a]) is a


def test_without_room_there_is_no_choice() -> None:
    full, drained = Engine("full", in_flight=4, max_requests=4), Engine("drained", drained=True)
    for choice in (
        least_loaded([full, drained]),
        two_choices([full, drained], random.Random(1).random),
        prefix_affine([full, drained], "key"),
        least_loaded([]),
    ):
        assert choice is None


def test_two_choices_serve_by_weight() -> None:
    targets, source = engines(1, 1, 2), random.Random(5)
    for _ in range(800):
        chosen = two_choices(targets, source.random)
        assert chosen is not None
        chosen.in_flight += 1
    assert [target.in_flight for target in targets] == pytest.approx([200, 200, 400], rel=0.1)


def test_two_choices_do_not_all_choose_the_least_loaded() -> None:
    targets, source = engines(1, 1, 1, 1), random.Random(5)
    targets[0].in_flight, targets[3].in_flight = 1, 9
    chosen = Counter(two_choices(targets, source.random).name for _ in range(600))  # type: ignore[union-attr]
    assert chosen["e1"] > 100
    assert chosen["e2"] > 100
    assert chosen["e3"] == 0


def test_a_prefix_stays_with_its_engine_and_only_the_keys_of_one_that_leaves_move() -> None:
    targets = engines(1, 1, 1, 1)
    keys = [f"prefix {index}" for index in range(400)]
    before = {key: prefix_affine(targets, key) for key in keys}
    targets[2].drained = True
    after = {key: prefix_affine(targets, key) for key in keys}
    moved = [key for key in keys if after[key] is not before[key]]
    assert {before[key].name for key in moved if before[key]} == {"e2"}  # type: ignore[union-attr]
    assert len(moved) == pytest.approx(100, rel=0.4)


def test_prefixes_are_shared_by_weight() -> None:
    wins = sum(affinity("a", 1, str(key)) > affinity("b", 3, str(key)) for key in range(4000))
    assert wins == pytest.approx(1000, rel=0.1)


def test_a_popular_prefix_spills_over_before_one_engine_is_overfull() -> None:
    targets = engines(1, 1, 1, 1)
    for _ in range(400):
        chosen = prefix_affine(targets, "popular")
        assert chosen is not None
        chosen.in_flight += 1
    loads = sorted(target.in_flight for target in targets)
    assert loads[-1] <= 126
    assert sum(loads) == 400


def test_without_a_prefix_the_least_loaded_is_chosen() -> None:
    a, b = engines(1, 1)
    a.in_flight = 1
    assert prefix_affine([a, b], "") is b


TARGETS = st.lists(
    st.builds(
        Engine,
        name=st.uuids().map(str),
        weight=st.floats(0.001, 1000),
        in_flight=st.integers(0, 20),
        max_requests=st.integers(1, 20),
        drained=st.booleans(),
        foreign=st.integers(0, 1000),
    ),
    max_size=8,
)


@given(TARGETS, st.text(), st.randoms(use_true_random=False))
def test_each_rule_chooses_one_with_room_if_there_is_one(
    targets: list[Engine], key: str, source: random.Random
) -> None:
    any_room = any(has_room(target) for target in targets)
    for chosen in (
        least_loaded(targets),
        two_choices(targets, source.random),
        prefix_affine(targets, key),
    ):
        assert (chosen is not None) == any_room
        assert chosen is None or has_room(chosen)
