"""Free GPUs per node, indexed by their number; best fit as in `services.placement.core.round.fit`.

`free` [m] are GPUs, `levels[f]` counts the nodes with f free ones. Nodes are as healthy as each
other and named in the order of their numbers (rule 4).
"""

from __future__ import annotations

from simulator.kernel.compiled import compiled
from simulator.kernel.state import Allocations, Ints


@compiled
def has_room(levels: Ints, workers: int, gpus: int) -> bool:
    """Return whether that many workers with that many GPUs each fit now."""
    places = 0
    for f in range(gpus, levels.shape[0]):
        if levels[f]:
            places += levels[f] * (f // gpus)
            if places >= workers:
                return True
    return False


@compiled
def shift(free: Ints, levels: Ints, node: int, gpus: int) -> None:
    """Take (-) or return (+) GPUs of a node."""
    levels[free[node]] -= 1
    free[node] += gpus
    levels[free[node]] += 1


@compiled
def first_node_with(free: Ints, level: int) -> int:
    """Return the first node with exactly that many free GPUs, or -1."""
    for node in range(free.shape[0]):
        if free[node] == level:
            return node
    return -1


@compiled
def pick_node(free: Ints, levels: Ints, left: int, gpus: int) -> int:
    """Return the tightest node that takes all remaining workers, else the one with most free
    GPUs.
    """
    most = levels.shape[0] - 1
    for level in range(left * gpus, most + 1):
        if levels[level]:
            return first_node_with(free, level)
    for level in range(most, gpus - 1, -1):
        if levels[level]:
            return first_node_with(free, level)
    return -1


@compiled
def place(free: Ints, levels: Ints, workers: int, gpus: int, placed: Allocations) -> int:
    """Take the nodes of a gang that has room (rule 4); fill `placed` and return their number."""
    left = workers
    count = 0
    while left > 0:
        node = pick_node(free, levels, left, gpus)
        fitting = min(left, free[node] // gpus)
        shift(free, levels, node, -fitting * gpus)
        placed[count].node = node
        placed[count].gpus = fitting * gpus
        count += 1
        left -= fitting
    return count


@compiled
def give_back(free: Ints, levels: Ints, placed: Allocations, count: int) -> None:
    """Return the GPUs that `place` took."""
    for at in range(count):
        shift(free, levels, placed[at].node, placed[at].gpus)
