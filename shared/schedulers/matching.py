"""The cheapest assignment of rows to columns (Kuhn 1955, by shortest augmenting paths).

OR-tools' own takes whole numbers, and as many rows as columns: AlloX has a column per GPU and job.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


def cheapest_assignment(cost: Floats) -> list[int]:
    """Return the column of each row of `cost` [rows, columns], no fewer columns than rows.

    Of equal ones the first column is taken, so the result is the same everywhere.
    """
    rows, columns = cost.shape
    if rows > columns:
        raise ValueError(f"columns: {columns}, must be at least the rows, {rows}")
    row_price, column_price = np.zeros(rows), np.zeros(columns)
    row_of = np.full(columns, -1)
    for row in range(rows):
        last, before = _shortest_path(cost, row, row_price, column_price, row_of)
        while last >= 0:
            previous = int(before[last])
            row_of[last] = row if previous < 0 else row_of[previous]
            last = previous
    column_of = [-1] * rows
    for column, row in enumerate(row_of.tolist()):
        if row >= 0:
            column_of[row] = column
    return column_of


def _shortest_path(
    cost: Floats, start: int, row_price: Floats, column_price: Floats, row_of: npt.NDArray[np.int64]
) -> tuple[int, npt.NDArray[np.int64]]:
    """Return the free column of the cheapest path from the row, and the column before each one.

    Prices are updated so that no reduced cost becomes negative.
    """
    columns = cost.shape[1]
    distance, before = np.full(columns, np.inf), np.full(columns, -1)
    is_done = np.zeros(columns, bool)
    row, column, length = start, -1, 0.0
    while True:
        reduced = length + cost[row] - row_price[row] - column_price
        is_shorter = (reduced < distance) & ~is_done
        distance[is_shorter], before[is_shorter] = reduced[is_shorter], column
        column = int(np.argmin(np.where(is_done, np.inf, distance)))
        length = float(distance[column])
        is_done[column] = True
        if row_of[column] < 0:
            break
        row = int(row_of[column])
    passed = np.flatnonzero(is_done & (np.arange(columns) != column))
    row_price[row_of[passed]] += length - distance[passed]
    column_price[passed] -= length - distance[passed]
    row_price[start] += length
    return column, before
