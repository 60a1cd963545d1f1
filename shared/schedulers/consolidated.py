"""Placements on as few nodes as a gang can have: within one node, or whole nodes and one more."""

from __future__ import annotations

from collections.abc import Mapping

from shared.schedulers.placing import FreeGpus, TypeAndGpus, take
from shared.schedulers.view import ClusterView, Placement, gpus_of


def free_of_type(view: ClusterView, gpu_type: str) -> FreeGpus:
    """Return all GPUs of a type by node, as if no job held any."""
    return {node.node_id: node.gpus for node in view.nodes if node.gpu_type == gpu_type}


def first_fit(free: FreeGpus, largest: int, gpus: int) -> Placement:
    """Return the first nodes that hold a gang, () if none do; `largest` is a whole node's GPUs.

    A gang that is larger than a node has whole nodes, and its rest on one more.
    """
    whole, rest = divmod(gpus, max(largest, 1))
    taken = [(node, largest) for node, count in free.items() if count == largest][:whole]
    if len(taken) < whole:
        return ()
    if rest:
        used = {node for node, _ in taken}
        last = next((n for n, count in free.items() if count >= rest and n not in used), None)
        if last is None:
            return ()
        taken.append((last, rest))
    return tuple(taken)


def consolidated(view: ClusterView, allotments: Mapping[str, TypeAndGpus]) -> dict[str, Placement]:
    """Place the largest first; what a job holds it keeps, unless another then fits nowhere.

    Gangs of powers of two always fit if their GPUs are free, as nodes have powers of two.
    """
    kept = _place(view, allotments, keeps=True)
    return kept if len(kept) == len(allotments) else _place(view, allotments, keeps=False)


def _place(
    view: ClusterView, allotments: Mapping[str, TypeAndGpus], keeps: bool
) -> dict[str, Placement]:
    free = {name: free_of_type(view, name) for name in view.gpus_of_type}
    largest = {name: max(own.values(), default=0) for name, own in free.items()}
    placements: dict[str, Placement] = {}
    by_size = sorted(allotments, key=lambda job_id: -allotments[job_id].gpus)
    for job_id in by_size if keeps else ():
        gpu_type, gpus = allotments[job_id].gpu_type, allotments[job_id].gpus
        held = view.job_by_id[job_id].placement
        is_same = gpus_of(held) == gpus and view.type_of(held) == gpu_type
        if held and is_same and all(free[gpu_type][node] >= count for node, count in held):
            take(free[gpu_type], held)
            placements[job_id] = held
    for job_id in by_size:
        if job_id in placements:
            continue
        gpu_type, gpus = allotments[job_id].gpu_type, allotments[job_id].gpus
        placement = first_fit(free[gpu_type], largest[gpu_type], gpus)
        if placement:
            take(free[gpu_type], placement)
            placements[job_id] = placement
    return placements
