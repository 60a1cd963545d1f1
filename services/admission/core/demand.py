"""The demand of a gang and the offer of nodes, in whole numbers so that sums are exact."""

from __future__ import annotations

from typing import NamedTuple

from shared.contracts.bookkeeping import NodeShape
from shared.contracts.job_spec import JobSpec, selector_of

GPU = 1000
"""Thousandths of one device."""
MIB = 1024
"""MiB of one GiB."""


class Demand(NamedTuple):
    """The request of one worker, the nodes it allows, and the fewest workers of the gang."""

    gpu_milli: int
    cpu_milli: int
    mem_mib: int
    gpu_types: tuple[str, ...]
    node_selector: dict[str, str]
    workers: int
    gang_milli: int
    """Thousandths of GPUs of the gang as submitted: the charge on its tenant's quota."""


class NodeClass(NamedTuple):
    """The equal offer of several nodes; nodes of one class are counted, not listed."""

    gpu_type: str
    gpus: int
    cpu_milli: int
    mem_mib: int
    labels: tuple[tuple[str, str], ...]


def demand_of(spec: JobSpec) -> Demand:
    gang = spec.gang
    gpu_milli = round(gang.gpus_per_worker * GPU)
    return Demand(
        gpu_milli,
        round(gang.cpus_per_worker * 1000),
        round(gang.mem_gib_per_worker * MIB),
        spec.gpu_types,
        selector_of(spec),
        spec.elastic.min_workers if spec.elastic else gang.workers,
        gang.workers * gpu_milli,
    )


def gang_milli_of(spec: JobSpec) -> int:
    return spec.gang.workers * round(spec.gang.gpus_per_worker * GPU)


def node_class_of(node: NodeShape) -> NodeClass:
    return NodeClass(
        node.gpu_type,
        node.gpus,
        round(node.cpus * 1000),
        round(node.mem_gib * MIB),
        tuple(sorted(node.labels.items())),
    )
