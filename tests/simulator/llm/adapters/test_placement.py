"""A placement is confirmed by the twin at the rates with headroom, or says which engine starves."""

from __future__ import annotations

import pytest

from simulator.llm.adapters.engines import ENGINES
from simulator.llm.adapters.loads import AdapterLoad
from simulator.llm.adapters.placement import Planner

LLAMA = ENGINES["llama-3.1-8b"]


def loads(count: int, rate: float) -> list[AdapterLoad]:
    return [AdapterLoad(f"a{n:02d}", 8, rate, 300, 200) for n in range(count)]


def test_engines_have_names_slots_and_the_margin_that_was_required() -> None:
    placement = Planner(LLAMA, span_s=120).place(loads(40, 0.8))
    assert placement.confirmed
    assert len(placement.engines) >= placement.lower_bound > 1
    names = [engine.name for engine in placement.engines]
    assert names == [f"engine-{n}" for n in range(1, len(names) + 1)]
    for engine in placement.engines:
        assert engine.margin >= 0.19
        assert engine.kv_tokens >= LLAMA.longest_tokens
        assert engine.slots in (8, 16, 32, 64)


def test_more_headroom_needs_at_least_as_many_engines() -> None:
    few, more = (
        Planner(LLAMA, headroom, span_s=60).place(loads(40, 0.8)) for headroom in (0.0, 2.0)
    )
    assert len(few.engines) < len(more.engines)


def test_a_plan_is_made_tighter_until_the_twin_confirms_it() -> None:
    bursts = [AdapterLoad(f"a{n:02d}", 8, 0.8, 300, 200, cv=8.0) for n in range(30)]
    strict = Planner(LLAMA, 0.0, span_s=200, most_wait_s=1.0).place(bursts)
    calm = Planner(LLAMA, 0.0, span_s=200, most_wait_s=1.0).place(loads(30, 0.8))
    assert len(strict.engines) >= len(calm.engines)
    for engine in strict.engines:
        assert engine.confirmed == (engine.served_ratio >= 0.99 and engine.oldest_wait_s <= 1.0)


def test_new_engines_do_not_take_names_of_present_ones() -> None:
    present = {"engine-1": ("a00",)}
    placement = Planner(LLAMA, span_s=60, present=present).place(loads(40, 0.8))
    names = [engine.name for engine in placement.engines]
    assert len(names) == len(set(names))
    assert "engine-1" in names
    assert placement.moves == ()


@pytest.mark.parametrize("seed", [0, 1])
def test_plans_are_the_same_for_the_same_input(seed: int) -> None:
    one, other = (Planner(LLAMA, seed=seed, span_s=60).place(loads(20, 0.5)) for _ in range(2))
    assert one == other
