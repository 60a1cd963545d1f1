"""What a running stack takes of the machine, by process; what a process started counts with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

from infra.supervisor import control

MIB = 2**20
SUPERVISOR = "supervisor"


@dataclass(frozen=True, slots=True)
class Memory:
    """In MiB. `pss` shares out what several processes map: copies of code, Postgres's buffers."""

    rss_mib: float = 0.0
    pss_mib: float = 0.0

    def __add__(self, other: Memory) -> Memory:
        return Memory(self.rss_mib + other.rss_mib, self.pss_mib + other.pss_mib)


def memory(data_dir: Path) -> dict[str, Memory]:
    """Now, by process; the supervisor's own is `SUPERVISOR`. Empty where no stack runs."""
    trees = _trees(data_dir)
    if trees:
        # All others are below it.
        trees[SUPERVISOR] = _tree(control.supervisor_pid(data_dir))[:1]
    return {name: sum(map(_memory, tree), Memory()) for name, tree in trees.items()}


def cpu_s(data_dir: Path) -> dict[str, float]:
    """Spent so far by each process and by what it started; the supervisor's own is not in it."""
    return {name: sum(map(_cpu_s, tree)) for name, tree in _trees(data_dir).items()}


def _trees(data_dir: Path) -> dict[str, list[psutil.Process]]:
    return {each.name: _tree(each.pid) for each in control.processes(data_dir) if each.pid}


def _tree(pid: int) -> list[psutil.Process]:
    """The process, then all below it."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _memory(process: psutil.Process) -> Memory:
    """Nothing of a process that ended meanwhile."""
    try:
        rss = process.memory_info().rss / MIB
    except psutil.Error:
        return Memory()
    try:
        return Memory(rss, process.memory_full_info().pss / MIB)
    except (psutil.Error, AttributeError):
        # Only Linux says it, and only of processes of our own.
        return Memory(rss, rss)


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)
