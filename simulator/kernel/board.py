"""Free GPUs per node, indexed by their number; best fit as `services.placement.core.fit` does it."""

from __future__ import annotations

import numpy as np
from numba import njit

MOST = 64
"""GPUs of the largest node."""


@njit(cache=True)
def room(levels, workers, gpus):
    """Do that many workers fit now? `levels[f]` counts the nodes with f free GPUs."""
    if gpus == 0:
        return True
    found = 0
    for f in range(gpus, levels.shape[0]):
        if levels[f]:
            found += levels[f] * (f // gpus)
            if found >= workers:
                return True
    return False


@njit(cache=True)
def shift(free, levels, node, gpus):
    """Take (-) or give back (+) GPUs of a node."""
    levels[free[node]] -= 1
    free[node] += gpus
    levels[free[node]] += 1


@njit(cache=True)
def first_at(free, level):
    for node in range(free.shape[0]):
        if free[node] == level:
            return node
    return -1


@njit(cache=True)
def pick(free, levels, left, gpus):
    """A node that takes all that is left and has least over; else the roomiest; -1: none."""
    most = levels.shape[0] - 1
    for level in range(left * gpus, most + 1):
        if levels[level]:
            return first_at(free, level)
    for level in range(most, gpus - 1, -1):
        if levels[level]:
            return first_at(free, level)
    return -1


@njit(cache=True)
def place(free, levels, workers, gpus, nodes, shares):
    """Best fit of a gang that has room: fills `nodes` and `shares` (GPUs there), says how many."""
    left = workers
    count = 0
    while left > 0:
        node = pick(free, levels, left, gpus)
        here = min(left, free[node] // gpus) if gpus else left
        shift(free, levels, node, -here * gpus)
        nodes[count] = node
        shares[count] = here * gpus
        count += 1
        left -= here
    return count


def histogram(sizes):
    """`levels` of empty nodes with these numbers of GPUs."""
    levels = np.zeros(int(sizes.max()) + 1, np.int64)
    for size in sizes:
        levels[size] += 1
    return levels
