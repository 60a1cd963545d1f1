"""Kills what a worker without a pid namespace leaves: members of its groups, and orphans."""

from __future__ import annotations

import os

from berth_agent.linux import cgroups, processes


def sweep(groups: list[str], spared: int = 0) -> bool:
    """Kill the groups' members and the children of this process; return whether something lives.

    The process is their subreaper, so that every orphan becomes a child of it; `spared` is a
    child that is not killed.
    """
    cgroups.kill_members(groups)
    orphans = _children(spared)
    if not orphans:
        return False
    processes.kill_each(orphans)
    for pid in orphans:
        _reap(pid)
    # The children of those that died just now are children of this process by now.
    return bool(_children(spared))


def _children(spared: int) -> list[int]:
    return [pid for pid in processes.children() if pid != spared]


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
