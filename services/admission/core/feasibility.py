"""Feasibility: counts the workers of a gang that the nodes could hold if all were empty."""

from __future__ import annotations

from collections.abc import Mapping

from services.admission.core.demand import GPU, Demand, NodeClass


def fits(node_classes: Mapping[NodeClass, int], demand: Demand) -> bool:
    return count_workers(node_classes, demand) >= demand.workers


def count_workers(node_classes: Mapping[NodeClass, int], demand: Demand) -> int:
    """Return how many workers empty nodes hold at once; counting stops when the gang fits."""
    workers = 0
    for node_class, nodes in node_classes.items():
        workers += nodes * workers_per_node(node_class, demand)
        if workers >= demand.workers:
            break
    return workers


def workers_per_node(node_class: NodeClass, demand: Demand) -> int:
    if demand.gpu_types and node_class.gpu_type not in demand.gpu_types:
        return 0
    selector = demand.node_selector
    if selector and not selector.items() <= dict(node_class.labels).items():
        return 0
    workers = demand.workers
    if demand.gpu_milli:
        workers = min(workers, workers_by_gpus(node_class.gpus, demand.gpu_milli))
    if demand.cpu_milli:
        workers = min(workers, node_class.cpu_milli // demand.cpu_milli)
    if demand.mem_mib:
        workers = min(workers, node_class.mem_mib // demand.mem_mib)
    return workers


def workers_by_gpus(gpus: int, gpu_milli: int) -> int:
    """Return how many workers fit the GPUs; a fraction lies on one GPU and wastes its rest."""
    if gpu_milli < GPU:
        return gpus * (GPU // gpu_milli)
    return gpus // (gpu_milli // GPU)
