from __future__ import annotations

import pytest

from services.placement.core.solver.knapsacks import Item, fractional, knapsack


@pytest.mark.parametrize(("capacity", "most"), [(0, 0), (2, 5), (3, 7), (5, 12), (9, 16), (10, 16)])
def test_a_knapsack_takes_whole_jobs(capacity: int, most: int) -> None:
    items = [Item(2, 5), Item(3, 7), Item(4, 4)]
    assert knapsack(items, capacity)[capacity] == most
    assert fractional(items, capacity) >= most


def test_a_job_that_needs_nothing_is_in_every_knapsack() -> None:
    assert knapsack([Item(0, 3), Item(1, 1)], 1) == [3, 4]
    assert fractional([Item(0, 3), Item(1, 1)], 0) == 3
