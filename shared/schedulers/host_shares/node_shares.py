"""Nodes of a round, and what jobs hold of them: GPUs by node, cores and memory per GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.schedulers.host_shares.sensitivity import PerGpu


class HostCapacity(NamedTuple):
    """The capacity of a node with GPUs."""

    gpus: int
    cpu_milli: int
    mem_mib: int

    @property
    def fair(self) -> PerGpu:
        """The proportional share of one GPU."""
        return PerGpu(self.cpu_milli // self.gpus, self.mem_mib // self.gpus)


class HostShare(NamedTuple):
    """GPUs of a job by node, and its cores and memory beside each of them."""

    gpus: Mapping[int, int]
    share: PerGpu


@dataclass(slots=True)
class HeldShares:
    """Nodes by number, and the jobs that a round has put on them."""

    capacity: tuple[HostCapacity, ...]
    by_job: dict[str, HostShare] = field(default_factory=dict)
    free_gpus: list[int] = field(init=False)
    free_cpu: list[int] = field(init=False)
    free_mem: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.free_gpus = [node.gpus for node in self.capacity]
        self.free_cpu = [node.cpu_milli for node in self.capacity]
        self.free_mem = [node.mem_mib for node in self.capacity]

    def put(self, job_id: str, share: HostShare) -> None:
        self.by_job[job_id] = share
        self._shift(share, -1)

    def shrink(self, job_id: str, share: PerGpu) -> None:
        """Change cores and memory of a job to this share, on all its nodes alike."""
        before = self.by_job[job_id]
        self._shift(before, 1)
        self.put(job_id, before._replace(share=share))

    def _shift(self, own: HostShare, sign: int) -> None:
        for number, gpus in own.gpus.items():
            self.free_gpus[number] += sign * gpus
            self.free_cpu[number] += sign * gpus * own.share.cpu_milli
            self.free_mem[number] += sign * gpus * own.share.mem_mib

    def room(self, number: int, share: PerGpu) -> int:
        """Return how many GPUs with this share fit on a node now."""
        room = self.free_gpus[number]
        if share.cpu_milli:
            room = min(room, self.free_cpu[number] // share.cpu_milli)
        if share.mem_mib:
            room = min(room, self.free_mem[number] // share.mem_mib)
        return room

    def fullest_first(self) -> list[int]:
        """Return the nodes with free GPUs, those with the fewest first, then by number."""
        numbers = (number for number, free in enumerate(self.free_gpus) if free)
        return sorted(numbers, key=lambda number: (self.free_gpus[number], number))

    def fair_on(self, numbers: Mapping[int, int]) -> PerGpu:
        """Return the proportional share of one GPU that all of these nodes have."""
        shares = [self.capacity[number].fair for number in numbers]
        return PerGpu(
            min(share.cpu_milli for share in shares), min(share.mem_mib for share in shares)
        )

    def on(self, number: int) -> Iterator[tuple[str, HostShare]]:
        return ((name, own) for name, own in self.by_job.items() if number in own.gpus)
