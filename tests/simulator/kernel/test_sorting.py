"""The merge sort of the queue."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from simulator.kernel import sorting, state
from tests.simulator.kernel.interpreted import interpret


@pytest.fixture(autouse=True)
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    interpret(monkeypatch, sorting)


def rows_of(pairs: list[tuple[float, int]], spare: int = 0) -> Any:
    rows = state.table(state.SortRow, len(pairs) + spare)
    for row, (value, tie) in zip(rows, pairs, strict=False):
        row.value, row.tie = value, tie
    return rows


@pytest.mark.parametrize("count", [0, 1, 2, 7, 64, 65])
def test_rows_are_ordered_by_value_and_then_by_tie(count: int) -> None:
    random = Random(count)
    ties = random.sample(range(count), count)
    pairs = [(float(random.randrange(5)), tie) for tie in ties]
    rows = rows_of(pairs)
    sorting.sort(rows, count)
    assert rows.order.tolist() == sorted(range(count), key=pairs.__getitem__)


def test_rows_beyond_the_count_are_not_touched() -> None:
    rows = rows_of([(2.0, 0), (1.0, 1), (0.0, 2)], spare=1)
    rows[2].order = 77
    sorting.sort(rows, 2)
    assert rows.order.tolist() == [1, 0, 77, 0]
