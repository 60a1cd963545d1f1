from __future__ import annotations

import numpy as np

from simulator.failslow.tables import columns_of


def test_a_series_that_ended_goes_on_with_its_last_value() -> None:
    table = columns_of([np.array([1.0, 2.0]), np.array([5.0])])
    assert table.tolist() == [[1, 5], [2, 5]]
