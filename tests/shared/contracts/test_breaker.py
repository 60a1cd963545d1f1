from __future__ import annotations

import pytest

from shared.contracts.breaker import most_out_of_use


@pytest.mark.parametrize(
    ("share", "nodes", "most"),
    [(0.1, 1, 0), (0.1, 2, 1), (0.1, 30, 3), (0.0, 30, 0), (0.5, 3, 1), (1.0, 4, 4)],
)
def test_a_share_is_one_of_several_nodes_at_least(share: float, nodes: int, most: int) -> None:
    assert most_out_of_use(share, nodes) == most
