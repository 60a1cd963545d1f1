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
    orphans = [pid for pid in processes.children() if pid != spared]
    processes.kill_each(orphans)
    return not all([_reaped(pid) for pid in orphans])


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
