"""Partial allocation against all choices of small auctions."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from shared.schedulers.auction import EMPTY, kept_parts, proportionally_fair
from shared.schedulers.hooks import Allotment

FREE = {"a": 3, "b": 2}


def drawn(rng: random.Random) -> dict[str, dict[Allotment, float]]:
    every = [Allotment(name, gpus) for name in FREE for gpus in (1, 2, 3)]
    return {
        f"j{number}": {own: rng.uniform(0.1, 2.0) for own in rng.sample(every, 3)}
        for number in range(rng.randint(1, 4))
    }


def best_product(bids: dict[str, dict[Allotment, float]]) -> float:
    """Return the logarithm of the largest product that the GPUs allow, by trying all."""
    best = -math.inf
    for combination in itertools.product(*([None, *own] for own in bids.values())):
        used = {
            name: sum(own.gpus for own in combination if own is not None and own.gpu_type == name)
            for name in FREE
        }
        if all(used[name] <= FREE[name] for name in FREE):
            values = (
                EMPTY if own is None else bids[bidder][own]
                for bidder, own in zip(bids, combination, strict=True)
            )
            best = max(best, sum(map(math.log, values)))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_the_product_is_the_largest_and_parts_are_what_others_lose(seed: int) -> None:
    bids = drawn(random.Random(seed))
    choice = proportionally_fair(bids, FREE)
    product = sum(math.log(bids[b][choice[b]] if b in choice else EMPTY) for b in bids)
    assert product == pytest.approx(best_product(bids), abs=1e-4)
    for bidder, part in kept_parts(bids, FREE, choice).items():
        rest = {name: own for name, own in bids.items() if name != bidder}
        of_others = product - math.log(bids[bidder][choice[bidder]])
        lost = of_others - (best_product(rest) if rest else 0.0)
        assert 0.0 < part <= 1.0
        assert part == pytest.approx(math.exp(lost), rel=1e-3)


def test_who_displaces_nothing_keeps_all() -> None:
    bids = {name: {Allotment("a", 1): 1.0} for name in ("x", "y", "z")}
    assert kept_parts(bids, FREE, proportionally_fair(bids, FREE)) == dict.fromkeys("xyz", 1.0)


def test_a_bid_in_larger_units_gains_nothing() -> None:
    bids = {"x": {Allotment("a", 2): 1.0}, "y": {Allotment("a", 2): 0.8, Allotment("a", 1): 0.5}}
    choice = proportionally_fair(bids, FREE)
    assert choice == {"x": Allotment("a", 2), "y": Allotment("a", 1)}
    assert kept_parts(bids, FREE, choice) == pytest.approx({"x": 0.5 / 0.8, "y": 1.0})
