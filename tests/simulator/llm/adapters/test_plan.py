"""Plans hold every adapter once, need few engines, and change little of a present plan."""

from __future__ import annotations

import random

import pytest

from simulator.llm.adapters.engines import ENGINES
from simulator.llm.adapters.loads import AdapterLoad
from simulator.llm.adapters.plan import (
    Bin,
    NotServable,
    Packer,
    kept_plan,
    lower_bound,
    moves_of,
    named_after,
)

LLAMA = ENGINES["llama-3.1-8b"]
PACKER = Packer(LLAMA)


def drawn_loads(seed: int, count: int) -> list[AdapterLoad]:
    draw = random.Random(seed)
    rates = (1.6, 0.4, 0.1, 0.025)
    return [
        AdapterLoad(f"a{n:03d}", draw.choice((8, 16, 32)), draw.choice(rates), 400, 200)
        for n in range(count)
    ]


def named(bins: list[Bin]) -> dict[str, tuple[str, ...]]:
    return {f"e{n}": tuple(load.adapter for load in bin_.loads) for n, bin_ in enumerate(bins)}


@pytest.mark.parametrize("seed", range(3))
def test_every_adapter_is_on_one_engine_that_serves_it(seed: int) -> None:
    loads = drawn_loads(seed, 60)
    bins = PACKER.pack(loads)
    assert sorted(load.adapter for bin_ in bins for load in bin_.loads) == sorted(
        load.adapter for load in loads
    )
    assert all(PACKER.serves(bin_) for bin_ in bins)
    assert lower_bound(LLAMA, loads) <= len(bins) <= lower_bound(LLAMA, loads) + 1


def test_no_engine_is_needed_without_adapters() -> None:
    assert PACKER.pack([]) == []
    assert lower_bound(LLAMA, []) == 0


def test_one_light_adapter_needs_one_engine() -> None:
    loads = [AdapterLoad("a", 8, 0.01, 100, 100)]
    assert len(PACKER.pack(loads)) == lower_bound(LLAMA, loads) == 1


def test_an_adapter_that_one_engine_does_not_serve_is_an_error() -> None:
    with pytest.raises(NotServable, match="big: 500 requests per s"):
        PACKER.pack([AdapterLoad("big", 8, 500, 100, 100)])


def test_a_present_plan_that_serves_is_kept() -> None:
    loads = drawn_loads(0, 60)
    present = named(PACKER.pack(loads))
    bins = kept_plan(PACKER, loads, present, 100)
    assert moves_of(bins, present) == []
    assert {bin_.name for bin_ in bins} == set(present)


def test_an_overloaded_engine_loses_only_what_it_cannot_serve() -> None:
    loads = drawn_loads(0, 60)
    present = named(PACKER.pack(loads))
    grown = [load.scaled(1.5) if n < 3 else load for n, load in enumerate(loads)]
    bins = kept_plan(PACKER, grown, present, 0)
    assert all(PACKER.serves(bin_) for bin_ in bins)
    assert len(moves_of(bins, present)) < 12


def test_engines_are_saved_within_the_bound_of_moves_alone() -> None:
    light = [AdapterLoad(f"a{n}", 8, 0.01, 100, 100) for n in range(20)]
    present = {"e0": tuple(f"a{n}" for n in range(15)), "e1": tuple(f"a{n}" for n in range(15, 20))}
    assert len(kept_plan(PACKER, light, present, 4)) == 2
    saved = kept_plan(PACKER, light, present, 5)
    assert [bin_.name for bin_ in saved] == ["e0"]
    assert len(moves_of(saved, present)) == 5


def test_new_adapters_are_no_moves_and_removed_ones_leave() -> None:
    loads = [AdapterLoad(name, 8, 0.01, 100, 100) for name in ("kept", "new")]
    present = {"e0": ("kept", "gone")}
    bins = kept_plan(PACKER, loads, present, 0)
    assert [load.adapter for load in bins[0].loads] == ["kept", "new"]
    assert moves_of(bins, present) == []


def test_engines_keep_the_name_of_those_with_which_they_share_most() -> None:
    one, two = (Bin(loads=[AdapterLoad(name, 8, 1, 1, 1)]) for name in "ab")
    named_after([one, two], {"x": ("b", "c"), "y": ("a",)})
    assert (one.name, two.name) == ("y", "x")
