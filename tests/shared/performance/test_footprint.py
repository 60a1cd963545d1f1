from __future__ import annotations

import pytest

from shared.performance.footprint import Footprint, Tier


@pytest.mark.parametrize(
    ("per_node", "racks", "tier"),
    [((1,), 1, "gpu"), ((4,), 1, "node"), ((4, 2), 1, "rack"), ((4, 4), 2, "spine")],
)
def test_the_tier_is_the_slowest_link(per_node: tuple[int, ...], racks: int, tier: Tier) -> None:
    assert Footprint("a", per_node, 4, racks).tier == tier


def test_gpus_that_fit_fewer_nodes_are_not_consolidated() -> None:
    assert Footprint("a", (4, 2), 4).is_consolidated
    assert not Footprint("a", (1, 1), 4).is_consolidated
    assert Footprint("a", (3,)).is_consolidated
    assert not Footprint("a", (4, 4)).is_consolidated, "the size of a node is unknown"
