from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.spot.places import (
    CALM,
    SpotNodes,
    calm_after,
    first_fit,
    packed,
    places,
)


def nodes_with(free: list[int], guaranteed: list[int], spot: list[int]) -> SpotNodes:
    first, second, third = (np.array(own, np.int64) for own in (free, guaranteed, spot))
    return SpotNodes(first, second, third, np.full(len(free), CALM))


def test_packing_fills_the_fullest_node_and_then_that_of_its_own_kind() -> None:
    nodes = nodes_with([8, 2, 2, 4], [0, 6, 0, 4], [0, 0, 6, 0])
    assert places(nodes, 1, 2, False, packed) == [1]
    assert places(nodes, 1, 2, True, packed) == [2]
    assert places(nodes, 1, 3, True, packed) == [3]
    assert places(nodes, 1, 2, True, first_fit) == [0]


def test_a_spot_job_avoids_nodes_with_evictions_and_a_guaranteed_one_takes_them() -> None:
    nodes = nodes_with([4, 4], [4, 4], [0, 0])
    nodes.calm = calm_after(np.array([3, 0]), np.array([3, 0]))
    assert places(nodes, 1, 1, True, packed) == [1]
    assert places(nodes, 1, 1, False, packed) == [0]


def test_the_eviction_score_falls_with_evictions_to_zero() -> None:
    """Published: 10,000 (1 - 0.01 * 2^(0.8 h + 0.2 d)), at least 0."""
    scores = calm_after(np.array([0, 1, 100]), np.array([0, 5, 100]))
    assert scores[0] == 9900
    assert scores[1] == CALM * (1 - 0.01 * 2**1.8)
    assert scores[2] == 0


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=8),
    st.integers(1, 6),
    st.integers(1, 8),
    st.booleans(),
)
def test_a_gang_has_all_its_nodes_or_none(
    free: list[int], workers: int, gpus: int, is_spot: bool
) -> None:
    """T5."""
    zeros = [0] * len(free)
    for scores in (first_fit, packed):
        nodes = nodes_with(free, zeros, zeros)
        rows = places(nodes, workers, gpus, is_spot, scores)
        assert nodes.free.tolist() == free
        assert (rows is not None) == (sum(own // gpus for own in free) >= workers)
        if rows is not None:
            assert len(rows) == workers
            assert all(gpus * rows.count(row) <= free[row] for row in rows)
