"""Finds where the agent may make control groups: version 1 or 2, whichever is writable."""

from __future__ import annotations

import os

from berth_agent.linux import cgroups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITED = ("cpu", "memory", "pids")
LEAF = "agent"
"""Group of version 2 that holds the processes of the agent's unit."""
UNESCAPED = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


class Hierarchies:
    """The folders below which groups of workers are made, one per hierarchy.

    `limits` says what enforces CPU and memory: `v1`, `v2` or nothing.
    """

    def __init__(self, parents: list[str], limits: str) -> None:
        self.parents = parents
        self.limits = limits

    def remove(self) -> None:
        """Remove the parent groups, unless a worker's group is in them."""
        cgroups.remove(self.parents)


def open_hierarchies(name: str, own: str = "/proc/self") -> Hierarchies:
    """Make the parent group `name` where the machine permits it."""
    groups = _groups(own)
    controllers = [c for c in LIMITED if c in groups]
    parents = [path for c in controllers if (path := _made(f"{groups[c]}/{name}"))]
    limits = "v1" if len(parents) == len(LIMITED) else ""
    if unified := _unit(groups.get("", "")):
        delegated = not parents and _delegate(unified)
        if path := _made(f"{unified}/{name}"):
            limits = "v2" if delegated and _enable(path) else limits
            parents.append(path)
    return Hierarchies(list(dict.fromkeys(parents)), limits)


def _groups(own: str) -> dict[str, str]:
    """Return controller -> folder of this process; the key of version 2 is empty."""
    with open(f"{own}/cgroup", encoding="utf-8") as file:
        paths = [line.rstrip("\n").split(":", 2)[1:] for line in file]
    mounts = dict(_mounts(own))
    folders: dict[str, str] = {}
    for controllers, path in paths:
        for controller in controllers.split(","):
            if controller in mounts:
                root, point = mounts[controller]
                below = "" if path == root else path.removeprefix(root.rstrip("/"))
                folders[controller] = point + below.rstrip("/")
    return folders


def _mounts(own: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield controller -> root within the hierarchy and mount point."""
    with open(f"{own}/mountinfo", encoding="utf-8") as file:
        for line in file:
            fields, _, rest = line.partition(" - ")
            kind, _, options = rest.split()[:3]
            root, point = (_unescaped(field) for field in fields.split()[3:5])
            if kind == "cgroup2":
                yield "", (root, point)
            elif kind == "cgroup":
                for controller in options.split(","):
                    yield controller, (root, point)


def _unescaped(field: str) -> str:
    for code, character in UNESCAPED.items():
        field = field.replace(code, character)
    return field


def _made(folder: str) -> str:
    """Return the folder if it is there and groups can be made in it, else nothing."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return ""
    return folder if os.access(folder, os.W_OK) else ""


def _unit(unified: str) -> str:
    """Return the group of the unit: an agent that restarts may be born in the leaf of the last.

    Such a leaf lies in a group without processes, as version 2 has it below the root.
    """
    unit, _, leaf = unified.rpartition("/")
    if leaf == LEAF and os.path.exists(f"{unit}/cgroup.type") and not cgroups.members([unit]):
        return unit
    return unified


def _delegate(unified: str) -> bool:
    """Free the unit's own group of processes, and pass its controllers on.

    Version 2 permits limits only below groups that hold no process themselves.
    """
    try:
        leaf = f"{unified}/{LEAF}"
        os.makedirs(leaf, exist_ok=True)
        for pid in cgroups.members([unified]):
            cgroups.write(f"{leaf}/cgroup.procs", str(pid))
    except OSError:
        return False
    return _enable(unified)


def _enable(folder: str) -> bool:
    try:
        cgroups.write(f"{folder}/cgroup.subtree_control", " ".join(f"+{c}" for c in LIMITED))
    except OSError:
        return False
    return True
