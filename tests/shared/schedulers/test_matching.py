from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from shared.schedulers.matching import cheapest_assignment


@pytest.mark.parametrize("seed", range(40))
def test_no_assignment_is_cheaper(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 5)), int(rng.integers(4, 7))
    cost = rng.integers(0, 12, (rows, columns)).astype(float)
    chosen = cheapest_assignment(cost)
    assert len(set(chosen)) == rows
    least = min(
        sum(cost[row, column] for row, column in enumerate(columns_of))
        for columns_of in permutations(range(columns), rows)
    )
    assert sum(cost[row, column] for row, column in enumerate(chosen)) == least


def test_more_rows_than_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="columns: 1, must be at least the rows, 2"):
        cheapest_assignment(np.zeros((2, 1)))
