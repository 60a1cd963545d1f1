"""Monte-Carlo workload inflation: workers arrive until the cluster is full, and none ends.

The method of FGD's evaluation (Weng et al., USENIX ATC '23): the workers of a trace arrive in
random order, then workers drawn from it, until they have requested so many percent of the
cluster's GPUs. One that fits nowhere is lost, and the next one arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np

from services.placement.core.gpu_parts.nodes import NodeTable
from services.placement.core.gpu_parts.placer import Placer
from shared.contracts.gang_needs import GPU, NodeKind, Shape

END_PERCENT = 130
"""GPUs requested at the end, in percent of the cluster."""


@dataclass(frozen=True, slots=True)
class Inflation:
    """Figures of one run."""

    unallocated_percent: dict[int, float]
    """Percent of the cluster's GPUs that no worker holds, by percent of them requested so far."""
    lost: int
    """Workers that fitted nowhere."""
    workers: int


def arrivals(shapes: Sequence[Shape], gpu_milli: int, seed: int) -> list[Shape]:
    """Return the workers of a run in the order of their arrival, for a cluster of these GPUs."""
    draws = np.random.default_rng(seed)
    drawn = (int(draws.integers(len(shapes))) for _ in count())
    requested, limit = 0, gpu_milli * END_PERCENT // 100
    taken: list[Shape] = []
    for at in chain(draws.permutation(len(shapes)).tolist(), drawn):
        requested += shapes[at].worker_milli
        if requested > limit:
            break
        taken.append(shapes[at])
    return taken


def inflate(
    kinds: Sequence[NodeKind], workers: Sequence[Shape], placer: Placer, samples: Sequence[int]
) -> Inflation:
    """Place the workers one after another on empty nodes; sample at these percents requested."""
    table = NodeTable.of(kinds)
    total = int(table.gpus.sum()) * GPU
    requested = allocated = lost = 0
    unallocated: dict[int, float] = {}
    left = sorted(samples)
    for shape in workers:
        while left and 100 * (requested + shape.worker_milli) > left[0] * total:
            unallocated[left.pop(0)] = 100 * (total - allocated) / total
        requested += shape.worker_milli
        place = placer.place(table, shape)
        if place is None:
            lost += 1
            continue
        table.take(place.row, place.gpus, shape)
        allocated += shape.worker_milli
    unallocated |= dict.fromkeys(left, 100 * (total - allocated) / total)
    return Inflation(unallocated, lost, len(workers))
