from __future__ import annotations

from dataclasses import replace

import pytest

from shared.performance.footprint import Footprint
from shared.performance.rates import RateTable

TABLE = RateTable({("a", 1): 10.0, ("a", 4): 34.0, ("b", 1): 0.0}, {("a", 4): 20.0})


@pytest.mark.parametrize(
    ("footprint", "rate"),
    [
        (Footprint("a", (1,), 4), 10.0),
        (Footprint("a", (2,), 4), 18.0),
        (Footprint("a", (4,), 4), 34.0),
        (Footprint("a", (2, 2), 4), 20.0),
        (Footprint("a", (4, 4), 4), None),
        (Footprint("b", (1,), 4), 0.0),
        (Footprint("c", (1,), 4), None),
        (Footprint("a", (), 4), 0.0),
    ],
)
def test_what_was_not_measured_is_unknown(footprint: Footprint, rate: float | None) -> None:
    assert TABLE.rate(footprint) == rate


def test_a_gang_of_several_types_is_as_fast_as_the_slowest() -> None:
    table = RateTable({("v", 2): 4.0, ("p", 2): 1.0}, {("v", 2): 3.0, ("p", 2): 0.5})
    both = Footprint("v", (1, 1), 1, other_types=("p",))
    assert table.rate(both) == 1.0
    assert table.rate(replace(both, node_gpus=4)) == 0.5
    assert RateTable({("v", 2): 4.0}).rate(both) is None
