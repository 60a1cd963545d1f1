"""Control groups of workers: limits, and the end of all processes, by version 1 or 2.

A worker's group is a list of folders, one per hierarchy. Everything is best effort: what the
machine does not permit is left out, and `limits` names what is enforced.
"""

from __future__ import annotations

import os

from berth_agent.linux.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PERIOD_US = 100_000


def join(folders: Iterable[str]) -> None:
    """Move the present process into its groups; its children are born there. Raises OSError."""
    for folder in folders:
        write(f"{folder}/cgroup.procs", "0")


def members(folders: Iterable[str]) -> set[int]:
    """Return the processes of the groups."""
    pids: set[int] = set()
    for folder in folders:
        pids.update(int(pid) for pid in _read(f"{folder}/cgroup.procs").split())
    return pids


def kill(folders: Iterable[str]) -> bool:
    """Kill all processes of the groups at once where the kernel can; return whether it could."""
    for folder in folders:
        if os.path.exists(f"{folder}/cgroup.kill"):
            try:
                write(f"{folder}/cgroup.kill", "1")
            except OSError:
                continue
            return True
    return False


def kill_members(folders: Iterable[str]) -> None:
    """Kill the processes of the groups, those that they fork meanwhile at the next call."""
    if kill(folders):
        return
    for pid in members(folders):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def oom_kills(folders: Iterable[str]) -> int:
    """Return how often the kernel killed a process of the groups for their memory limit."""
    for folder in folders:
        for name in ("memory.events", "memory.oom_control"):
            for line in _read(f"{folder}/{name}").splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0


def remove(folders: Iterable[str]) -> None:
    """Remove empty groups."""
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            continue


def limits_of(folder: str, cpus: float, mem_bytes: int, pids: int) -> list[tuple[str, str]]:
    """Return the files of version 1 and 2 and their values; 0 means no limit."""
    values: list[tuple[str, str]] = []
    if cpus > 0:
        quota = str(max(1000, round(cpus * PERIOD_US)))
        values += [("cpu.max", f"{quota} {PERIOD_US}")]
        values += [("cpu.cfs_period_us", str(PERIOD_US)), ("cpu.cfs_quota_us", quota)]
    if mem_bytes > 0:
        size = str(mem_bytes)
        values += [("memory.max", size), ("memory.swap.max", "0"), ("memory.oom.group", "1")]
        values += [("memory.limit_in_bytes", size), ("memory.memsw.limit_in_bytes", size)]
    if pids > 0:
        values += [("pids.max", str(pids))]
    return [(f"{folder}/{name}", value) for name, value in values]


def create(parents: Iterable[str], name: str, cpus: float, mem_bytes: int, pids: int) -> list[str]:
    """Create a group below each parent with its limits; return the folders. Raises OSError.

    A file that a hierarchy lacks belongs to another version or controller.
    """
    folders = []
    for parent in parents:
        folder = f"{parent}/{name}"
        os.makedirs(folder, exist_ok=True)
        folders.append(folder)
        for path, value in limits_of(folder, cpus, mem_bytes, pids):
            if os.path.exists(path):
                write(path, value)
    return folders


def write(path: str, value: str) -> None:
    """Write a value to a file of a group. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""
