"""Merge sort of row numbers by (value, tie), fast where they are nearly in order."""

from __future__ import annotations

from simulator.kernel.compiled import compiled
from simulator.kernel.state import Sorting


@compiled
def before(rows: Sorting, a: int, b: int) -> bool:
    """Return whether row a comes before row b."""
    one, other = rows[a], rows[b]
    return one.value < other.value or (one.value == other.value and one.tie < other.tie)


@compiled
def merge(rows: Sorting, low: int, mid: int, high: int) -> None:
    """Merge two ordered parts of `order`."""
    if before(rows, rows[mid - 1].order, rows[mid].order):
        return
    for at in range(low, mid):
        rows[at].spare = rows[at].order
    left, right, at = low, mid, low
    while left < mid:
        if right < high and before(rows, rows[right].order, rows[left].spare):
            rows[at].order = rows[right].order
            right += 1
        else:
            rows[at].order = rows[left].spare
            left += 1
        at += 1


@compiled
def sort(rows: Sorting, count: int) -> None:
    """Set `rows[k].order` to the number of the row that comes k-th, for k < count."""
    for at in range(count):
        rows[at].order = at
    width = 1
    while width < count:
        for mid in range(width, count, 2 * width):
            merge(rows, mid - width, mid, min(mid + width, count))
        width *= 2
