"""Sizing of a pool to a load: by the number of its nodes, or by stretching arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from services.executor.core.virtual.inventory import InventoryNode
from simulator.metrics.measures import offered_load
from simulator.metrics.outcome import Floats
from simulator.workload.rows import NODE_GPUS, WorkloadJob

LAST_SHARE = 0.4
"""Part of the trace's time that is evaluated; the time before it fills the queue."""
SEARCH_RADIUS = 64
"""Node counts tried on either side of the first guess."""
LOAD_TOLERANCE = 0.02
"""Difference from the requested load that is ignored: of these pools the largest fit wins."""
PLENTY_CPUS = 4096.0
PLENTY_MEM_GIB = 65536.0
"""CPUs and memory of a node where GPUs alone are scarce."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """Number of nodes, and the load that the evaluation window offers them."""

    nodes: int
    gpus_per_node: int
    load: float
    window_s: tuple[float, float]


def window_of(jobs: Sequence[WorkloadJob], last_share: float = LAST_SHARE) -> tuple[float, float]:
    """Return the last part of the time of submission; its end includes the last submit."""
    first, last = jobs[0].submit_s, jobs[-1].submit_s
    return first + (1 - last_share) * (last - first), float(np.nextafter(last, np.inf))


def load_of(
    jobs: Sequence[WorkloadJob], nodes: int, gpus_per_node: int, window_s: tuple[float, float]
) -> float:
    """Return the offered load of the jobs that could ever fit."""
    return offered_load_of(jobs, gpus_per_node, window_s).load(nodes)


def nodes_for_load(
    jobs: Sequence[WorkloadJob],
    load: float,
    last_share: float = LAST_SHARE,
    gpus_per_node: int = NODE_GPUS,
) -> Sizing:
    """Return the node count with the offered load nearest to `load`. Raises ValueError without
    GPU jobs.
    """
    window_s = window_of(jobs, last_share)
    offered = offered_load_of(jobs, gpus_per_node, window_s)
    nodes = offered.nodes_for(load)
    return Sizing(nodes, gpus_per_node, offered.load(nodes), window_s)


def stretch_arrivals(jobs: Sequence[WorkloadJob], factor: float) -> list[WorkloadJob]:
    """Return jobs with arrivals `factor` times as far apart (0.5: twice the load)."""
    first = jobs[0].submit_s
    return [replace(job, submit_s=first + (job.submit_s - first) * factor) for job in jobs]


def equal_nodes(
    count: int, gpus: int = NODE_GPUS, *, pool: str, gpu_type: str = "gpu", racks: int = 1
) -> dict[str, InventoryNode]:
    """Return identical nodes with more CPU and memory than jobs can request, in equal `racks`."""
    width = len(str(count - 1))
    names = [f"n{number:0{width}d}" for number in range(count)]
    return {
        name: InventoryNode(
            name,
            pool,
            "virtual",
            gpu_type,
            gpus,
            PLENTY_CPUS,
            PLENTY_MEM_GIB,
            f"r{number * racks // count}",
            (),
        )
        for number, name in enumerate(names)
    }


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """Offered load for any number of nodes, from arrays [n] of jobs that are built once."""

    submit_s: Floats
    duration_s: Floats
    gpus: Floats
    least_nodes: Floats
    """Empty nodes that hold the gang."""
    gpus_per_node: int
    window_s: tuple[float, float]

    def load(self, nodes: int) -> float:
        """Return the load of the jobs that could ever fit."""
        gpus = np.where(self.least_nodes <= nodes, self.gpus, 0.0)
        capacity = float(nodes * self.gpus_per_node)
        return offered_load(self.submit_s, self.duration_s, gpus, capacity, self.window_s)

    def nodes_for(self, load: float) -> int:
        """Return the number of nodes with the nearest load, of those within `LOAD_TOLERANCE` the
        one that holds most jobs. Raises ValueError if no job has GPUs.
        """
        guess = round(self.load(1 << 20) * (1 << 20) / load)
        if guess <= 0 and self.load(1) <= 0:
            raise ValueError("no job that was submitted in the window requests GPUs")
        tried = range(max(1, guess - SEARCH_RADIUS), guess + SEARCH_RADIUS + 1)
        loads = {nodes: self.load(nodes) for nodes in tried}
        near = {nodes for nodes, offered in loads.items() if abs(offered - load) <= LOAD_TOLERANCE}
        most = max((self.held(nodes) for nodes in near), default=0)
        best = [nodes for nodes in near if self.held(nodes) == most] or tried
        return min(best, key=lambda nodes: (abs(loads[nodes] - load), nodes))

    def held(self, nodes: int) -> int:
        """Return the number of jobs that fit into that many empty nodes."""
        return int((self.least_nodes <= nodes).sum())


def offered_load_of(
    jobs: Sequence[WorkloadJob], gpus_per_node: int, window_s: tuple[float, float]
) -> OfferedLoad:
    """Return the arrays of these jobs."""
    return OfferedLoad(
        _array([job.submit_s for job in jobs]),
        _array([job.duration_s for job in jobs]),
        _array([job.gpus for job in jobs]),
        _array([_least_nodes(job, gpus_per_node) for job in jobs]),
        gpus_per_node,
        window_s,
    )


def _least_nodes(job: WorkloadJob, gpus_per_node: int) -> float:
    """Return the empty nodes that the gang needs, infinity if no node holds a worker."""
    if job.gpus == 0:
        return 1
    if job.gpus_per_worker > gpus_per_node:
        return float("inf")
    shares = 1 if job.gpus_per_worker >= 1 else int(1 / job.gpus_per_worker)
    worker_gpus = max(job.gpus_per_worker, 1.0)
    return -(-job.workers // (int(gpus_per_node // worker_gpus) * shares))


def _array(values: Sequence[float]) -> Floats:
    return np.asarray(values, np.float64)
