from __future__ import annotations

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
