"""The demand of a job: the needs of its gang, and the charge on the quota of its tenant."""

from __future__ import annotations

from typing import NamedTuple

from shared.contracts.bookkeeping import NodeShape
from shared.contracts.gang_needs import GPU, NodeKind, Shape, kind_of, shape_of
from shared.contracts.job_spec import JobSpec


class Demand(NamedTuple):
    """The needs of a gang, and its GPUs as submitted."""

    shape: Shape
    gang_milli: int
    """Thousandths of GPUs of all workers: the charge on its tenant's quota."""


def demand_of(spec: JobSpec) -> Demand:
    return Demand(shape_of(spec), gang_milli_of(spec))


def gang_milli_of(spec: JobSpec) -> int:
    return spec.gang.workers * round(spec.gang.gpus_per_worker * GPU)


def node_kind_of(node: NodeShape) -> NodeKind:
    return kind_of(node.gpu_type, node.gpus, node.cpus, node.mem_gib, node.labels)
