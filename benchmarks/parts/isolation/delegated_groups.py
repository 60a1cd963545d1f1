"""Control groups that root gives to an ordinary user, as systemd does by `Delegate=yes`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from berth_agent.linux import cgroups
from berth_agent.linux.hierarchies import open_hierarchies

OWNED = ("cgroup.procs", "cgroup.threads", "cgroup.subtree_control", "tasks")
"""Files of a group that its owner writes; its limits stay those of root."""
JOIN = 'for group; do [ "$group" = -- ] && break; echo $$ > "$group/cgroup.procs"; shift; done; '
START = f'set -eu; {JOIN}shift; exec "$@"'


@contextmanager
def delegated_groups(name: str, uid: int) -> Iterator[list[str]]:
    """Yield the words before a command that runs in groups of its user.

    There are none where root runs it, or where this user may make no groups with limits.
    """
    if uid == 0 or os.geteuid() != 0 or not (hierarchies := open_hierarchies(name)).limits:
        yield []
        return
    try:
        for group in hierarchies.parents:
            give(group, uid)
        yield words(hierarchies.parents)
    finally:
        for group in hierarchies.parents:
            cgroups.remove(below(group))


def give(group: str, uid: int) -> None:
    """Let the user make groups in this one, and move its own processes there."""
    for path in (group, *(f"{group}/{name}" for name in OWNED)):
        if os.path.exists(path):
            os.chown(path, uid, uid)


def words(groups: Sequence[str]) -> list[str]:
    return ["sh", "-c", START, "sh", *groups, "--"]


def below(group: str) -> list[str]:
    """Return the group and those in it, the innermost first."""
    inner = sorted(Path(group).rglob("*/"), key=lambda path: -len(path.parts))
    return [*(str(path) for path in inner if path.is_dir()), group]
