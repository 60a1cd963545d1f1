"""The estimate is monotone, and its error against the twin is within its stated bounds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from simulator.llm.adapters.engines import ENGINES
from simulator.llm.adapters.loads import AdapterLoad, draw_requests
from simulator.llm.adapters.throughput import (
    ERROR_BOUNDS,
    LoadSums,
    capacity_of,
    feasible_slots,
    sums_of,
)
from simulator.llm.adapters.twin import Twin

LLAMA = ENGINES["llama-3.1-8b"]


def drawn_loads(seed: int, count: int) -> list[AdapterLoad]:
    draw = random.Random(seed)
    rates = (1.6, 0.4, 0.1, 0.025, 0.0125)
    return [
        AdapterLoad(f"a{n}", draw.choice((8, 16)), draw.choice(rates), 220, 190)
        for n in range(count)
    ]


def test_sums_of_adapters_do_not_depend_on_how_they_are_added() -> None:
    loads, one_by_one = drawn_loads(1, 20), LoadSums()
    for load in loads:
        one_by_one = one_by_one.plus(load)
    together = sums_of(loads)
    for name in ("rate_per_s", "output_per_s", "prompt_per_s", "held", "max_rank", "adapters"):
        assert getattr(together, name) == pytest.approx(getattr(one_by_one, name))
    for name in ("running", "variance", "starts"):
        assert np.allclose(getattr(together, name), getattr(one_by_one, name))


def test_a_load_that_is_served_is_served_with_an_adapter_less() -> None:
    for seed in range(20):
        loads = drawn_loads(seed, 40)
        if feasible_slots(LLAMA, sums_of(loads)):
            assert feasible_slots(LLAMA, sums_of(loads[:-1]))
        assert capacity_of(LLAMA, loads).factor <= capacity_of(LLAMA, loads[:-1]).factor


def test_slots_are_limited_by_memory() -> None:
    light = [AdapterLoad(f"a{n}", 32, 1e-4, 100, 100) for n in range(200)]
    assert max(feasible_slots(LLAMA, sums_of(light))) == 96


def test_a_load_that_no_slots_serve_has_no_capacity() -> None:
    huge = [AdapterLoad("a", 8, 1.0, 100, 400_000)]
    assert capacity_of(LLAMA, huge).factor < 1


def test_few_adapters_get_no_more_slots_than_they_need() -> None:
    assert capacity_of(LLAMA, drawn_loads(1, 7)).slots == 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_twin_serves_what_the_estimate_says_within_its_bounds(seed: int) -> None:
    loads = drawn_loads(seed, 48)
    capacity = capacity_of(LLAMA, loads)
    low, high = ERROR_BOUNDS
    for factor, starves in ((1 + low, False), (1 + high, True)):
        scaled = [load.scaled(capacity.factor * factor) for load in loads]
        report = Twin(LLAMA, capacity.slots, scaled).run(draw_requests(scaled, 900, seed), 900)
        assert report.starves(0.99, 30) == starves
