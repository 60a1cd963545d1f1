"""RLTune's allocation: the splits in which a gang fits, and the one that its program would choose.

A split takes GPUs of the fewest nodes (tier 1), or of one more if that leaves no more nodes in part
free (tier 2; not for a single GPU, and here for gangs of two nodes at most). Nodes with equally
many free GPUs are alike. Of the best split for defragmentation and for balance of either tier the
program takes the one with the least `nodes in part free + 0.3 x spread of free GPUs - 0.5 x nodes
that fit the next job`; with at most four splits that is a minimum, no solver is needed. As released
the first term has no effect, by a constraint in one direction only; here it has its intended one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

NODE_GPUS = 8
PAIRS = np.array(
    [(free, part) for free in range(1, NODE_GPUS + 1) for part in range(1, free + 1)], np.int64
)
"""[36, 2] free GPUs of a node and those that a gang takes of it."""
MAX_NODES = 20
MAX_SPLITS = 64
ALPHA, BETA, GAMMA = 1.0, 0.3, 0.5
TWO_NODES = 2

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function with numba."""
    return cast(F, njit(function))


@compiled
def find_splits(levels: Any, gpus: int, nodes: int, splits: Any) -> int:
    """Write the first splits [64, nodes] as rows of `PAIRS`, and return their number.

    `levels` [9] has the number of nodes by their free GPUs.
    """
    if nodes > MAX_NODES:
        return 0
    count, depth, left = 0, 0, gpus
    picks = np.full(nodes, -1, np.int64)
    is_taken = np.zeros(nodes, np.bool_)
    used = np.zeros(NODE_GPUS + 1, np.int64)
    while depth >= 0:
        if is_taken[depth]:
            used[PAIRS[picks[depth], 0]] -= 1
            left += PAIRS[picks[depth], 1]
            is_taken[depth] = False
        rest = nodes - depth - 1
        pick = picks[depth] + 1
        while pick < len(PAIRS):
            free, after = PAIRS[pick, 0], left - PAIRS[pick, 1]
            if used[free] < levels[free] and rest <= after <= rest * NODE_GPUS:
                break
            pick += 1
        picks[depth] = pick
        if pick == len(PAIRS):
            depth -= 1
            continue
        used[PAIRS[pick, 0]] += 1
        left -= PAIRS[pick, 1]
        is_taken[depth] = True
        if rest:
            depth += 1
            picks[depth] = pick - 1
        else:
            splits[count, :nodes] = picks
            count += 1
            if count == len(splits):
                return count
    return count


@compiled
def after_split(levels: Any, split: Any, nodes: int) -> Any:
    """Return the levels after a split was taken."""
    after = levels.copy()
    for at in range(nodes):
        free, part = PAIRS[split[at], 0], PAIRS[split[at], 1]
        after[free] -= 1
        after[free - part] += 1
    return after


@compiled
def partly_free(levels: Any) -> int:
    """Return the number of nodes of which some GPUs are free and some in use."""
    return int(levels[1:NODE_GPUS].sum())


@compiled
def imbalance(levels: Any) -> float:
    """Return the variance of the nodes' free GPUs."""
    total = levels.sum()
    mean, square = 0.0, 0.0
    for free in range(NODE_GPUS + 1):
        mean += levels[free] * free
        square += levels[free] * free * free
    mean /= total
    return float(square / total - mean * mean)


@compiled
def program_cost(levels: Any, next_gpus: int) -> float:
    """Return what the program minimises, of the levels after a split."""
    most, least, fitting = 0, NODE_GPUS, 0
    for free in range(NODE_GPUS + 1):
        if levels[free]:
            most, least = max(most, free), min(least, free)
            if next_gpus and free >= min(next_gpus, NODE_GPUS):
                fitting += levels[free]
    return ALPHA * partly_free(levels) + BETA * (most - least) - GAMMA * fitting


@compiled
def tier_splits(levels: Any, gpus: int, tier: int, splits: Any) -> int:
    """Write the splits of a tier, and return their number."""
    nodes = (gpus + NODE_GPUS - 1) // NODE_GPUS + tier - 1
    if tier == 1:
        return int(find_splits(levels, gpus, nodes, splits))
    if gpus == 1 or nodes > TWO_NODES + 1:
        return 0
    total, kept = find_splits(levels, gpus, nodes, splits), 0
    for at in range(total):
        if partly_free(after_split(levels, splits[at], nodes)) <= partly_free(levels):
            splits[kept, :nodes] = splits[at, :nodes]
            kept += 1
    return int(kept)


@compiled
def choose_split(levels: Any, gpus: int, next_gpus: int, splits: Any, chosen: Any) -> int:
    """Write the chosen split, and return the number of its nodes; 0: the gang does not fit.

    `next_gpus` are those of the job that comes next in the base's order; 0: there is none.
    """
    least, taken = np.inf, 0
    for tier in (1, 2):
        nodes = (gpus + NODE_GPUS - 1) // NODE_GPUS + tier - 1
        count = tier_splits(levels, gpus, tier, splits)
        if tier == 1 and count == 0:
            return 0
        best, best_values = np.full(2, -1, np.int64), np.full(2, np.inf)
        for at in range(count):
            after = after_split(levels, splits[at], nodes)
            values = (float(partly_free(after)), imbalance(after))
            for goal in range(2):
                if values[goal] < best_values[goal]:
                    best[goal], best_values[goal] = at, values[goal]
        for goal in range(2):
            if best[goal] >= 0:
                cost = program_cost(after_split(levels, splits[best[goal]], nodes), next_gpus)
                if cost < least:
                    least, taken = cost, nodes
                    chosen[:nodes] = splits[best[goal], :nodes]
    return taken
