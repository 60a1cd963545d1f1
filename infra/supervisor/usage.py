"""CPU and memory use of a running stack by process, children included."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

from infra.supervisor import control

MIB = 2**20
SUPERVISOR = "supervisor"


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory in MiB; `pss` divides pages shared between processes."""

    rss_mib: float = 0.0
    pss_mib: float = 0.0

    def __add__(self, other: Memory) -> Memory:
        return Memory(self.rss_mib + other.rss_mib, self.pss_mib + other.pss_mib)


def memory(data_dir: Path) -> dict[str, Memory]:
    """Return the memory by process, the supervisor's as `SUPERVISOR`; empty without a stack."""
    trees = _trees(data_dir)
    if trees:
        # All others are below it.
        trees[SUPERVISOR] = _tree(control.supervisor_pid(data_dir))[:1]
    return {name: sum(map(_memory, tree), Memory()) for name, tree in trees.items()}


def cpu_s(data_dir: Path) -> dict[str, float]:
    """Return the CPU seconds of each process and its children, without the supervisor."""
    return {name: sum(map(_cpu_s, tree)) for name, tree in _trees(data_dir).items()}


def _trees(data_dir: Path) -> dict[str, list[psutil.Process]]:
    return {
        process.name: _tree(process.pid) for process in control.processes(data_dir) if process.pid
    }


def _tree(pid: int) -> list[psutil.Process]:
    """Return the process and its descendants; empty if it has ended."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _memory(process: psutil.Process) -> Memory:
    """Return the memory of a process; zero if it has ended."""
    try:
        rss = process.memory_info().rss / MIB
    except psutil.Error:
        return Memory()
    try:
        return Memory(rss, process.memory_full_info().pss / MIB)
    except (psutil.Error, AttributeError):
        # Only Linux reports it, and only for processes of the same user.
        return Memory(rss, rss)


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
