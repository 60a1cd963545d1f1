"""One way to the engine, and what its processes used."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

MIB = 2**20


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    """A proxy by its address and its process; without one it is the engine itself."""

    name: str
    url: str
    key: str
    pid: int | None = None
    beside: int | None = None
    """A process whose CPU is reported beside: the broker."""

    def cpu_s(self) -> float:
        """Return the CPU seconds of the process and its children so far."""
        return tree_cpu_s(self.pid)

    def beside_cpu_s(self) -> float:
        return tree_cpu_s(self.beside)

    def rss_mib(self) -> float:
        return sum(process.memory_info().rss for process in _tree(self.pid)) / MIB


def tree_cpu_s(pid: int | None) -> float:
    times = [process.cpu_times() for process in _tree(pid)]
    return sum(one.user + one.system for one in times)


def _tree(pid: int | None) -> list[psutil.Process]:
    if pid is None:
        return []
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]
