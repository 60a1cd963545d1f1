"""Space of a disk, measured and freed by programs of the machine.

A tree that a job has made may be deeper than a path is long, and than Python recurses.
"""

from __future__ import annotations

import os
import subprocess

from berth_agent.core.environment import DEFAULT_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

KIB = 2**10
GIB = 2**30
LOWEST = "19"
"""Priority."""


def sizes_bytes(folders: Iterable[str]) -> dict[str, int]:
    """Return the space that each folder takes, other disks left out; nothing of one that is gone.

    A file with several names counts once. It may take minutes, at the lowest priority. Raises
    OSError where the machine has no `du`.
    """
    if not (paths := list(folders)):
        return {}
    output = _call("nice", "-n", LOWEST, "du", "-skx", "--", *paths)
    sizes = (line.partition("\t") for line in output.splitlines())
    return {path: int(size) * KIB for size, _, path in sizes}


def remove(folder: str) -> None:
    """Remove a folder with all that is in it, as far as possible. Raises OSError."""
    if os.path.lexists(folder):
        _call("rm", "-rf", "--one-file-system", "--", folder)


def free_gib(folder: str) -> float:
    """Return what is free on the disk of a folder. Raises OSError."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize / GIB


def _call(*command: str) -> str:
    done = subprocess.run(
        command,
        env={"PATH": DEFAULT_PATH, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    return done.stdout
