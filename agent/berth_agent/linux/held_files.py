"""Space of files that have no name any more and are kept by a process: no `du` sees them."""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DELETED = " (deleted)"
"""Ends what /proc calls a file without a name; a name may end so too."""
BLOCK_BYTES = 512
SLICE = 1000
"""Files that are looked at before others get the interpreter."""
REST_S = 0.01


def held_bytes(pids: Iterable[int], devices: set[int]) -> int:
    """Return the space of nameless files of these disks that the processes have open or mapped.

    A file counts once. One that is on its way in a socket, and open nowhere, is not seen, and one
    that only a mapping keeps is seen by root alone.
    """
    sizes: dict[tuple[int, int], int] = {}
    for number, path in enumerate(_deleted(pids)):
        if number % SLICE == SLICE - 1:
            time.sleep(REST_S)
        if not path:
            continue
        try:
            file = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(file.st_mode) and file.st_nlink == 0 and file.st_dev in devices:
            sizes[file.st_dev, file.st_ino] = file.st_blocks * BLOCK_BYTES
    return sum(sizes.values())


def root_device(pid: int) -> int | None:
    """Return the device of what a process has as its root: in a container, that of its layers."""
    try:
        return os.stat(f"/proc/{pid}/root").st_dev
    except OSError:
        return None


def _deleted(pids: Iterable[int]) -> Iterator[str]:
    """Yield a path for each file that may be without a name, and nothing for each other."""
    for pid in pids:
        yield from _open(f"/proc/{pid}/fd")
        yield from _mapped(f"/proc/{pid}")


def _open(folder: str) -> Iterator[str]:
    # A look at the link needs nothing of the file's own disk, which may not answer.
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            yield f"{folder}/{name}" if os.readlink(f"{folder}/{name}").endswith(DELETED) else ""
        except OSError:
            continue


def _mapped(process: str) -> Iterator[str]:
    try:
        with open(f"{process}/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                is_deleted = line.endswith(f"{DELETED}\n")
                yield f"{process}/map_files/{_range(line)}" if is_deleted else ""
    except OSError:
        return


def _range(line: str) -> str:
    """Return the address range of a mapping as `map_files` names it, without leading zeros."""
    start, _, end = line.partition(" ")[0].partition("-")
    return f"{int(start, 16):x}-{int(end, 16):x}"
