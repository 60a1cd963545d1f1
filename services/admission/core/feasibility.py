"""Would this gang ever run? Counted against the nodes as if they were all empty."""

from __future__ import annotations

from collections.abc import Mapping

from services.admission.core.need import GPU, Need, Shape


def fits(shapes: Mapping[Shape, int], need: Need) -> bool:
    return most_workers(shapes, need) >= need.workers


def most_workers(shapes: Mapping[Shape, int], need: Need) -> int:
    """Workers that empty nodes could hold at once; no further counted than the gang needs."""
    found = 0
    for shape, nodes in shapes.items():
        found += nodes * workers_on(shape, need)
        if found >= need.workers:
            break
    return found


def workers_on(shape: Shape, need: Need) -> int:
    if need.types and shape.gpu_type not in need.types:
        return 0
    if need.selector and not need.selector.items() <= dict(shape.labels).items():
        return 0
    room = need.workers
    if need.gpu_milli:
        room = min(room, by_gpus(shape.gpus, need.gpu_milli))
    if need.cpu_milli:
        room = min(room, shape.cpu_milli // need.cpu_milli)
    if need.mem_mib:
        room = min(room, shape.mem_mib // need.mem_mib)
    return room


def by_gpus(gpus: int, milli: int) -> int:
    """A share lies on one GPU: what is left of each GPU is lost to others of its size."""
    if milli < GPU:
        return gpus * (GPU // milli)
    return gpus // (milli // GPU)
