"""Reads what other tools write about a training, where its job names the file.

The job owns the folder and is not trusted: links are not followed, what is no plain file of the
worker's user is left alone, and nothing waits or reads beyond a bound.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice

from berth_agent import file_names
from berth_agent.core.inspector_reports import (
    InspectorFile,
    is_of_inspector,
    read_inspector,
    row_between,
)
from berth_agent.core.iteration_rows import IterationRow, IterationRows
from berth_agent.core.tool_reports import row_of
from berth_agent.linux import files
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.telemetry_receiver import ProcessIterations

VARIABLE = "BERTH_STRAGGLERS"
"""Variable of a job: the file, below the private directory of each worker."""
EVERY_MS = 5_000
"""Between two looks at all files."""
MOST_WORKERS = 64
"""Read at one look, those first that were not read for longest."""
MOST_BYTES = 1024 * 1024
LOOK_S = 0.25
"""CPU time of one look, after which the files that are left are read at the next one."""
MOST_FOLDERS = 8
MOST_ENTRIES = 256
"""Of a folder in which the newest file is looked for."""
NS = 1e9
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

log = logging.getLogger(__name__)

Note = Callable[[str, int, ProcessIterations], None]


@dataclass(slots=True)
class ToolFile:
    """The file of one worker as it was read last: each other one is an iteration."""

    seen: tuple[int, int, int] = (0, 0, 0)
    """Inode, size and time of its last change."""
    reads: int = 0
    is_given_up: bool = False
    """Whether reading it failed in a way that is not foreseen."""
    inspector: InspectorFile | None = None
    """The file of NCCL's inspector before this one."""

    def take(self, data: bytes, rank: int) -> IterationRow | None:
        """Return what a new content says of the rank; None where it needs one more. Raises
        ValueError."""
        if not is_of_inspector(data):
            return row_of(data, rank, self.reads)
        before, self.inspector = self.inspector, read_inspector(data, self.seen[2] / NS)
        return None if before is None else row_between(before, self.inspector, self.reads)


class ToolFiles:
    """Used by the stream's thread alone: neither the content of a file nor the number of files may
    end that thread or hold it up.

    `cpu_s` is the CPU time of the thread so far.
    """

    def __init__(
        self, work_folder: str, note: Note, cpu_s: Callable[[], float] = time.thread_time
    ) -> None:
        self._work = work_folder
        self._note = note
        self._cpu_s = cpu_s
        self._files: dict[str, ToolFile] = {}
        """In the order in which they were looked at."""
        self._due_ms = 0

    def look(self, held: Iterable[AllocationFolder], now_ms: int) -> None:
        """Note what files say that are new or changed."""
        if now_ms < self._due_ms:
            return
        self._due_ms = now_ms + EVERY_MS
        named = {a.allocation_id: a for a in held if a.phase == "running" and VARIABLE in _env(a)}
        for name in self._files.keys() - named.keys():
            del self._files[name]
        for name in named:
            self._files.setdefault(name, ToolFile())
        end_s = self._cpu_s() + LOOK_S
        for name in list(self._files)[:MOST_WORKERS]:
            known = self._files[name] = self._files.pop(name)
            if not known.is_given_up:
                self._read_apart(named[name], known)
            if self._cpu_s() >= end_s:
                return

    def _read_apart(self, allocation: AllocationFolder, known: ToolFile) -> None:
        """Read one file; an error in it is no matter of other workers."""
        try:
            self._read(allocation, known)
        except Exception:
            known.is_given_up = True
            log.exception("%s of %s is not read any more", VARIABLE, allocation.allocation_id)

    def _read(self, allocation: AllocationFolder, known: ToolFile) -> None:
        try:
            work = (files.read_bytes(allocation.path(file_names.WORK)) or b"").decode()
            if not work:
                return
            folder = f"{self._work}/{work}"
            seen, data = read_file(folder, _env(allocation)[VARIABLE], known.seen)
        except (OSError, ValueError):
            return
        if seen == known.seen:
            return
        known.seen = seen
        rank = allocation.launch.rank
        try:
            row = known.take(data, rank)
        except (ValueError, ArithmeticError):
            return  # It is being written, or is another tool's.
        if row is None:
            return
        known.reads += 1
        self._note(allocation.allocation_id, rank, {rank: IterationRows([row])})


def _env(allocation: AllocationFolder) -> dict[str, str]:
    return allocation.launch.env


def read_file(
    folder: str, path: str, seen: tuple[int, int, int] = (0, 0, 0)
) -> tuple[tuple[int, int, int], bytes]:
    """Return a file below a folder as it is now; its content is empty where it is as `seen`.

    A name with a star stands for the newest file that it matches. Raises OSError, ValueError for a
    path or a file that is not read.
    """
    parts = path.split("/")
    if len(parts) > MOST_FOLDERS or not all(parts) or {".", ".."} & set(parts):
        raise ValueError(f"{VARIABLE}: {path!r}; a path below the private directory is allowed")
    opened = [os.open(folder, FOLDER)]
    try:
        for name in parts[:-1]:
            opened.append(os.open(name, FOLDER, dir_fd=opened[-1]))
        owner = os.fstat(opened[0]).st_uid
        name = _newest(opened[-1], parts[-1]) if "*" in parts[-1] else parts[-1]
        opened.append(os.open(name, FILE, dir_fd=opened[-1]))
        status = os.fstat(opened[-1])
        is_own = stat.S_ISREG(status.st_mode) and status.st_uid == owner and status.st_nlink == 1
        if not is_own or status.st_size > MOST_BYTES:
            raise ValueError(f"{VARIABLE}: {path!r}; a plain file of at most {MOST_BYTES} bytes")
        now = (status.st_ino, status.st_size, status.st_mtime_ns)
        return now, b"" if now == seen else os.read(opened[-1], MOST_BYTES)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _newest(folder: int, pattern: str) -> str:
    """Return the name of the newest entry that matches. Raises OSError without any."""
    newest: tuple[int, str] = (0, pattern)
    with os.scandir(folder) as entries:
        for entry in islice(entries, MOST_ENTRIES):
            if fnmatchcase(entry.name, pattern):
                newest = max(newest, (entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
    return newest[1]
