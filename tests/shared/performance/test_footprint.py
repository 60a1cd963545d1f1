from __future__ import annotations

from shared.performance.footprint import Footprint


def test_gpus_that_fit_fewer_nodes_are_not_consolidated() -> None:
    assert Footprint("a", (4, 2), 4).is_consolidated
    assert not Footprint("a", (1, 1), 4).is_consolidated
    assert Footprint("a", (3,)).is_consolidated
    assert not Footprint("a", (4, 4)).is_consolidated, "the size of a node is unknown"
