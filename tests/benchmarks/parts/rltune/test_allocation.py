"""Splits in which a gang fits, against all of small clusters, and the choice among them."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from benchmarks.parts.rltune.allocation import (
    MAX_NODES,
    MAX_SPLITS,
    PAIRS,
    choose_split,
    program_cost,
    tier_splits,
)

pytestmark = pytest.mark.parts

Way = tuple[tuple[int, int], ...]


def levels_of(free: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.bincount(free, minlength=9).astype(np.int64)


def ways_of(free: list[int], gpus: int, tier: int) -> set[Way]:
    splits = np.zeros((MAX_SPLITS, MAX_NODES), np.int64)
    count = tier_splits(levels_of(free), gpus, tier, splits)
    nodes = -(-gpus // 8) + tier - 1
    return {tuple(sorted(map(tuple, PAIRS[split[:nodes]].tolist()))) for split in splits[:count]}


def expected(free: list[int], gpus: int, tier: int) -> set[Way]:
    nodes = -(-gpus // 8) + tier - 1
    splits = set()
    for chosen in combinations(range(len(free)), nodes):
        for parts in product(*(range(1, free[node] + 1) for node in chosen)):
            broken = sum(0 < free[n] - part < 8 for n, part in zip(chosen, parts, strict=True))
            before = sum(0 < free[node] < 8 for node in chosen)
            if sum(parts) == gpus and (tier == 1 or (gpus > 1 and broken <= before)):
                taken = zip((free[node] for node in chosen), parts, strict=True)
                splits.add(tuple(sorted(taken)))
    return splits


@pytest.mark.parametrize("tier", [1, 2])
@pytest.mark.parametrize("gpus", [1, 2, 4, 8, 12, 16])
@pytest.mark.parametrize("free", [[8, 8, 4, 2], [2, 2, 2], [8, 7, 5, 0], [8, 8, 8]])
def test_every_way_of_a_tier_is_found_once(free: list[int], gpus: int, tier: int) -> None:
    assert ways_of(free, gpus, tier) == expected(free, gpus, tier)


def test_a_gang_takes_what_is_left_of_a_node_that_is_in_part_free() -> None:
    chosen = np.zeros(MAX_NODES, np.int64)
    splits = np.zeros((MAX_SPLITS, MAX_NODES), np.int64)
    assert choose_split(levels_of([8, 8, 2]), 2, 8, splits, chosen) == 1
    assert PAIRS[chosen[0]].tolist() == [2, 2]
    assert choose_split(levels_of([2, 2]), 8, 0, splits, chosen) == 0


def test_the_program_counts_broken_nodes_the_spread_and_nodes_for_the_next_job() -> None:
    assert program_cost(levels_of([8, 3, 0]), 2) == pytest.approx(1.0 + 0.3 * 8 - 0.5 * 2)
    assert program_cost(levels_of([8, 3, 0]), 0) == pytest.approx(1.0 + 0.3 * 8)
