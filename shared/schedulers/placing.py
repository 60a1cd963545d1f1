"""Nodes for allotments: what a job holds it keeps, the rest by one of two rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from shared.schedulers.view import ClusterView, Placement, gpus_of

FreeGpus: TypeAlias = dict[str, int]
"""Free GPUs by node, in the order of the nodes."""


class TypeAndGpus(Protocol):
    """An allotment."""

    @property
    def gpu_type(self) -> str: ...

    @property
    def gpus(self) -> int: ...


Rule: TypeAlias = Callable[[FreeGpus, int], Placement]
"""Picks nodes for so many GPUs, which are known to be free."""


def best_fit(view: ClusterView, allotments: Mapping[str, TypeAndGpus]) -> dict[str, Placement]:
    """Place the largest first, each on the node that it fills best, else on the roomiest ones."""
    by_size = sorted(allotments, key=lambda job_id: -allotments[job_id].gpus)
    return _place(view, {job_id: allotments[job_id] for job_id in by_size}, fullest_node)


def emptiest_first(
    view: ClusterView, allotments: Mapping[str, TypeAndGpus]
) -> dict[str, Placement]:
    """Place in the order of the allotments, each on the nodes with most free GPUs."""
    return _place(view, allotments, roomiest_nodes)


def fullest_node(free: FreeGpus, gpus: int) -> Placement:
    fitting = [node for node, count in free.items() if count >= gpus]
    if fitting:
        return ((min(fitting, key=lambda node: free[node]), gpus),)
    return roomiest_nodes(free, gpus)


def roomiest_nodes(free: FreeGpus, gpus: int) -> Placement:
    left, remaining = gpus, dict(free)
    taken: list[tuple[str, int]] = []
    while left > 0:
        node = max(remaining, key=lambda name: remaining[name])
        count = min(left, remaining.pop(node))
        taken.append((node, count))
        left -= count
    return tuple(taken)


def _place(
    view: ClusterView, allotments: Mapping[str, TypeAndGpus], rule: Rule
) -> dict[str, Placement]:
    free: dict[str, FreeGpus] = {name: {} for name in view.gpus_of_type}
    for node in view.nodes:
        free[node.gpu_type][node.node_id] = node.gpus
    placements: dict[str, Placement] = {}
    for job_id, allotment in allotments.items():
        held = view.job_by_id[job_id].placement
        is_same = gpus_of(held) == allotment.gpus and view.type_of(held) == allotment.gpu_type
        of_type = free[allotment.gpu_type]
        if is_same and held and all(of_type[node] >= gpus for node, gpus in held):
            take(of_type, held)
            placements[job_id] = held
    for job_id, allotment in allotments.items():
        of_type = free[allotment.gpu_type]
        if job_id in placements or not 0 < allotment.gpus <= sum(of_type.values()):
            continue
        placements[job_id] = rule(of_type, allotment.gpus)
        take(of_type, placements[job_id])
    return placements


def take(free: FreeGpus, placement: Placement) -> None:
    """Take the GPUs of a placement from those that are free."""
    for node, gpus in placement:
        free[node] -= gpus
