"""Servers of a round, and what jobs hold of them: GPUs by server, cores and memory per GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from services.placement.core.allotment.sensitivity import PerGpu


class Server(NamedTuple):
    """The capacity of a server with GPUs."""

    gpus: int
    cpu_milli: int
    mem_mib: int

    @property
    def fair(self) -> PerGpu:
        """The proportional share of one GPU."""
        return PerGpu(self.cpu_milli // self.gpus, self.mem_mib // self.gpus)


class Allotted(NamedTuple):
    """GPUs of a job by server, and its cores and memory beside each of them."""

    gpus: Mapping[int, int]
    share: PerGpu


@dataclass(slots=True)
class AllottedServers:
    """Servers by number, and the jobs that a round has put on them."""

    capacity: tuple[Server, ...]
    allotted: dict[str, Allotted] = field(default_factory=dict)
    free_gpus: list[int] = field(init=False)
    free_cpu: list[int] = field(init=False)
    free_mem: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.free_gpus = [server.gpus for server in self.capacity]
        self.free_cpu = [server.cpu_milli for server in self.capacity]
        self.free_mem = [server.mem_mib for server in self.capacity]

    def put(self, job_id: str, allotted: Allotted) -> None:
        self.allotted[job_id] = allotted
        self._shift(allotted, -1)

    def shrink(self, job_id: str, share: PerGpu) -> None:
        """Change cores and memory of a job to this share, on all its servers alike."""
        before = self.allotted[job_id]
        self._shift(before, 1)
        self.put(job_id, before._replace(share=share))

    def _shift(self, allotted: Allotted, sign: int) -> None:
        for number, gpus in allotted.gpus.items():
            self.free_gpus[number] += sign * gpus
            self.free_cpu[number] += sign * gpus * allotted.share.cpu_milli
            self.free_mem[number] += sign * gpus * allotted.share.mem_mib

    def room(self, number: int, share: PerGpu) -> int:
        """Return how many GPUs with this share fit on a server now."""
        room = self.free_gpus[number]
        if share.cpu_milli:
            room = min(room, self.free_cpu[number] // share.cpu_milli)
        if share.mem_mib:
            room = min(room, self.free_mem[number] // share.mem_mib)
        return room

    def fullest_first(self) -> list[int]:
        """Return the servers with free GPUs, those with the fewest first, then by number."""
        numbers = (number for number, free in enumerate(self.free_gpus) if free)
        return sorted(numbers, key=lambda number: (self.free_gpus[number], number))

    def fair_on(self, numbers: Mapping[int, int]) -> PerGpu:
        """Return the proportional share of one GPU that all of these servers have."""
        shares = [self.capacity[number].fair for number in numbers]
        return PerGpu(
            min(share.cpu_milli for share in shares), min(share.mem_mib for share in shares)
        )

    def on(self, number: int) -> Iterator[tuple[str, Allotted]]:
        return ((name, own) for name, own in self.allotted.items() if number in own.gpus)
