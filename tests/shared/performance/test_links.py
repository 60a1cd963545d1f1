from __future__ import annotations

import pytest

from shared.performance.footprint import Footprint
from shared.performance.links import EXAMPLE_LINKS, LinkTier, all_reduce_s, ring_s, slowdown


def test_a_ring_sends_each_byte_almost_twice() -> None:
    assert ring_s(4, 400.0, LinkTier(1.0, 100.0)) == pytest.approx(2 * 3 * (1.0 + 1.0))
    assert ring_s(1, 400.0, LinkTier(1.0, 100.0)) == 0.0


def test_more_tiers_cost_more() -> None:
    size = 2e9
    seconds = [
        all_reduce_s(footprint, size, EXAMPLE_LINKS) or 0.0
        for footprint in (
            Footprint("a", (1,), 8),
            Footprint("a", (8,), 8),
            Footprint("a", (4, 4), 8),
            Footprint("a", (4, 4), 8, racks=2),
        )
    ]
    assert seconds[0] == 0.0
    assert seconds == sorted(set(seconds))


def test_an_unknown_link_leaves_the_time_unknown() -> None:
    assert slowdown(Footprint("a", (4, 4), 8), 1.0, 1e9, {"node": EXAMPLE_LINKS["node"]}) is None
    assert slowdown(Footprint("a", (1,), 8), 1.0, 1e9, {}) == 1.0
