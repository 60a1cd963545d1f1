"""Knapsacks of gangs: the most value within a capacity, for the bounds of a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from services.placement.core.pool.shape import GPU
from services.placement.core.solver.instance import GangRequest
from services.placement.core.solver.objective import at_speed


class Item(NamedTuple):
    """A gang in the knapsack: what it needs of a resource, and what its start is worth."""

    need: int
    value: int


def item_of(request: GangRequest, per_worker: int) -> Item:
    """Return the least gang of a request, with the value of all workers that it may have."""
    value = at_speed(request.value, max(request.speeds, default=GPU))
    more = request.extra * (request.max_workers - request.min_workers)
    return Item(per_worker * request.min_workers, value + more)


def knapsack(items: Sequence[Item], capacity: int) -> list[int]:
    """Return the most value within each capacity from 0 on, [capacity + 1]."""
    best = [0] * (capacity + 1)
    for need, value in items:
        for room in range(capacity, need - 1, -1):
            with_it = best[room - need] + value
            if with_it > best[room]:
                best[room] = with_it
    return best


def fractional(items: Sequence[Item], capacity: int) -> int:
    """Return the most value if parts of jobs could start (Dantzig's bound), rounded up."""
    total = 0
    for need, value in sorted(items, key=lambda item: item.need / max(item.value, 1)):
        if need > capacity:
            return total + -(-value * capacity // need)
        total += value
        capacity -= need
    return total
