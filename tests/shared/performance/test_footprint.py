from __future__ import annotations

import pytest

from shared.performance.footprint import Footprint
from shared.performance.links import LinkTier


def test_gpus_that_fit_fewer_nodes_are_not_consolidated() -> None:
    assert Footprint("a", (4, 2), 4).is_consolidated
    assert not Footprint("a", (1, 1), 4).is_consolidated
    assert Footprint("a", (3,)).is_consolidated
    assert not Footprint("a", (4, 4)).is_consolidated, "the size of a node is unknown"


@pytest.mark.parametrize(
    ("footprint", "tier"),
    [
        (Footprint("a", (3,)), LinkTier.NODE),
        (Footprint("a", (4, 2), 4, racks=1), LinkTier.RACK),
        (Footprint("a", (4, 2), 4, racks=2), LinkTier.SPINE),
        (Footprint("a", (4, 2), 4), None),
    ],
)
def test_the_tier_is_the_smallest_part_that_holds_the_gpus(
    footprint: Footprint, tier: LinkTier | None
) -> None:
    assert footprint.tier is tier
