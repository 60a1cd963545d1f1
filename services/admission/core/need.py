"""What a gang asks of nodes, in whole numbers so that sums are exact."""

from __future__ import annotations

from typing import NamedTuple

from shared.contracts.bookkeeping import NodeShape
from shared.contracts.jobs import JobSpec

GPU = 1000
"""Thousandths of one device."""
MIB = 1024


class Need(NamedTuple):
    """One worker's need, where it may run, and the fewest workers the gang starts with."""

    gpu_milli: int
    cpu_milli: int
    mem_mib: int
    types: tuple[str, ...]
    selector: dict[str, str]
    workers: int
    gang_milli: int
    """GPUs of the gang as asked for: what its tenant's quota is charged."""


class Shape(NamedTuple):
    """One kind of node; nodes of one kind are counted, not listed."""

    gpu_type: str
    gpus: int
    cpu_milli: int
    mem_mib: int
    labels: tuple[tuple[str, str], ...]


def need_of(spec: JobSpec) -> Need:
    gang = spec.gang
    milli = round(gang.gpus_per_worker * GPU)
    return Need(
        milli,
        round(gang.cpus_per_worker * 1000),
        round(gang.mem_gib_per_worker * MIB),
        spec.gpu_types,
        spec.node_selector,
        spec.elastic.min_workers if spec.elastic else gang.workers,
        gang.workers * milli,
    )


def gang_milli(spec: JobSpec) -> int:
    return spec.gang.workers * round(spec.gang.gpus_per_worker * GPU)


def shape_of(node: NodeShape) -> Shape:
    return Shape(
        node.gpu_type,
        node.gpus,
        round(node.cpus * 1000),
        round(node.mem_gib * MIB),
        tuple(sorted(node.labels.items())),
    )
