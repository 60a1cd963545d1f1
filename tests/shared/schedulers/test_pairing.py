from __future__ import annotations

import random

import pytest

from shared.schedulers.pairing import best_pairs


def heaviest(left: tuple[int, ...], weights: dict[tuple[int, int], float]) -> float:
    """Return the largest total weight of pairs among the numbers, by trying all."""
    if len(left) < 2:
        return 0.0
    first, rest = left[0], left[1:]
    best = heaviest(rest, weights)
    for other in rest:
        if (first, other) in weights:
            others = tuple(number for number in rest if number != other)
            best = max(best, weights[first, other] + heaviest(others, weights))
    return best


@pytest.mark.parametrize("seed", range(30))
def test_no_pairs_weigh_more(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(1, 9)
    every = [(one, two) for two in range(count) for one in range(two)]
    weights = {pair: rng.uniform(0.1, 1.0) for pair in every if rng.random() < 0.7}
    pairs = best_pairs(count, weights)
    used = [number for pair in pairs for number in pair]
    assert len(used) == len(set(used))
    assert sum(weights[pair] for pair in pairs) == pytest.approx(
        heaviest(tuple(range(count)), weights)
    )
    assert best_pairs(count, weights) == pairs


def test_an_odd_cycle_leaves_its_lightest_one_out() -> None:
    assert best_pairs(3, {(0, 1): 0.5, (1, 2): 0.9, (0, 2): 0.4}) == [(1, 2)]
