"""The needs of a gang, and how many of its workers an empty node holds: one rule for all cores.

All numbers are whole, so that sums are exact.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from shared.contracts.job_spec import JobSpec, selector_of

GPU = 1000
"""Thousandths of one device."""
MIB = 1024
"""MiB of one GiB."""
MANY = 1 << 30


class Shape(NamedTuple):
    """The need of one worker, where it may run, and how many workers there are."""

    gpus: int
    milli: int
    cpu_milli: int
    mem_mib: int
    types: tuple[str, ...]
    selector: tuple[tuple[str, str], ...]
    min_workers: int
    max_workers: int
    nodes: tuple[str, ...] = ()
    """Nodes that get one worker each, though they be cordoned; none: any."""

    @property
    def is_share(self) -> bool:
        return self.milli < GPU

    @property
    def worker_milli(self) -> int:
        return self.gpus * self.milli


class WorkerNeeds(Protocol):
    """The cores and memory of one worker."""

    @property
    def cpu_milli(self) -> int: ...

    @property
    def mem_mib(self) -> int: ...


class NodeKind(NamedTuple):
    """Nodes of one kind hold the same when they are empty, and so are counted, not listed."""

    gpu_type: str
    gpus: int
    cpu_milli: int
    mem_mib: int
    labels: tuple[tuple[str, str], ...]

    def workers(self, shape: Shape) -> int:
        """Return how many workers of the shape an empty node of this kind holds.

        A fraction of a GPU lies on one GPU, of which equal workers leave the rest unused.
        """
        if shape.types and self.gpu_type not in shape.types:
            return 0
        if not matches(shape, dict(self.labels)):
            return 0
        per_gpu = GPU // shape.milli
        by_gpu = self.gpus // shape.gpus * per_gpu if shape.gpus else MANY
        return limit_workers(by_gpu, shape, self.cpu_milli, self.mem_mib)


def matches(shape: Shape, labels: dict[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in shape.selector)


def limit_workers(workers: int, needs: WorkerNeeds, cpu_milli: int, mem_mib: int) -> int:
    """Return how many of so many workers these cores and this memory are enough for."""
    if needs.cpu_milli:
        workers = min(workers, cpu_milli // needs.cpu_milli)
    if needs.mem_mib:
        workers = min(workers, mem_mib // needs.mem_mib)
    return max(0, workers)


def kind_of(
    gpu_type: str, gpus: int, cpus: float, mem_gib: float, labels: dict[str, str]
) -> NodeKind:
    ordered = tuple(sorted(labels.items()))
    return NodeKind(gpu_type, gpus, round(cpus * 1000), round(mem_gib * MIB), ordered)


def gpus_and_milli(gpus: float) -> tuple[int, int]:
    """Return the GPUs of a worker, and the thousandths that it needs of each; a part is of one."""
    milli = round(gpus * GPU)
    return (milli // GPU, GPU) if milli >= GPU or not milli else (1, milli)


def shape_of(spec: JobSpec) -> Shape:
    gang, elastic = spec.gang, spec.elastic
    gpus, milli = gpus_and_milli(gang.gpus_per_worker)
    return Shape(
        gpus=gpus,
        milli=milli,
        cpu_milli=round(gang.cpus_per_worker * 1000),
        mem_mib=round(gang.mem_gib_per_worker * MIB),
        types=tuple(sorted(set(spec.gpu_types))) if spec.gpu_types else (),
        selector=tuple(sorted(selector_of(spec).items())),
        min_workers=elastic.min_workers if elastic else gang.workers,
        max_workers=elastic.max_workers if elastic else gang.workers,
        nodes=spec.validates,
    )
