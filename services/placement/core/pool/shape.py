"""The needs of a job, in whole numbers so that sums are exact."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from shared.contracts.job_spec import PRIORITY_CLASSES, JobSpec, selector_of

GPU = 1000
"""Thousandths of one device."""
MIB = 1024
SPOT_TIER = len(PRIORITY_CLASSES)
TIERS = {name: tier for tier, name in enumerate(PRIORITY_CLASSES)}


class Slot(NamedTuple):
    """The part of a node that one worker gets."""

    node_id: str
    gpus: tuple[int, ...]
    milli: int
    cpu_milli: int
    mem_mib: int


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


def limit_workers(workers: int, needs: WorkerNeeds, cpu_milli: int, mem_mib: int) -> int:
    """Return how many of so many workers these cores and this memory are enough for."""
    if needs.cpu_milli:
        workers = min(workers, cpu_milli // needs.cpu_milli)
    if needs.mem_mib:
        workers = min(workers, mem_mib // needs.mem_mib)
    return max(0, workers)


def shape_of(spec: JobSpec) -> Shape:
    gang, elastic = spec.gang, spec.elastic
    milli = round(gang.gpus_per_worker * GPU)
    return Shape(
        gpus=milli // GPU if milli >= GPU else min(milli, 1),
        milli=milli if 0 < milli < GPU else GPU,
        cpu_milli=round(gang.cpus_per_worker * 1000),
        mem_mib=round(gang.mem_gib_per_worker * MIB),
        types=tuple(sorted(set(spec.gpu_types))) if spec.gpu_types else (),
        selector=tuple(sorted(selector_of(spec).items())),
        min_workers=elastic.min_workers if elastic else gang.workers,
        max_workers=elastic.max_workers if elastic else gang.workers,
        nodes=spec.validates,
    )


def tier_of(spec: JobSpec) -> int:
    """Return the tier: 0 goes first, and spot jobs come after all others, to which they yield."""
    return TIERS[spec.priority_class] + (SPOT_TIER if spec.spot else 0)
