"""Reads how far workers are from the end of their output, where their job enables it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable

from berth_agent.core.printed_progress import TAIL_BYTES, Counted, PrintedProgress
from berth_agent.core.progress_meter import MeasuredProgress, ProgressMeter
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.step.output import NAME

VARIABLE, OUTPUT = "BERTH_PROGRESS", "output"
"""Variable of a job, and its value, that enable it; the program does not see them."""
EVERY_MS = 5_000
"""Between two looks at all outputs."""
MOST_WORKERS = 64
"""Read at one look, those first that were not read for longest."""

Note = Callable[[str, MeasuredProgress], None]


class PrintedMeter:
    """The progress of one worker; its counts are noted when they change, as reports are."""

    def __init__(self) -> None:
        self._printed, self._meter = PrintedProgress(), ProgressMeter()
        self._last: Counted | None = None

    def note(self, tail: bytes, at_boot_ms: int) -> MeasuredProgress | None:
        """Return the progress, if it is another one than before and its pace is known."""
        counted = self._printed.note(tail)
        if counted is None or counted == self._last:
            return None
        self._last = counted
        self._meter.note(*counted, at_boot_ms)
        return self._meter.measured()


class OutputProgress:
    """Used by the stream's thread alone: what a worker prints is written without it."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._meters: dict[str, PrintedMeter] = {}
        """In the order in which they were read."""
        self._due_ms = 0

    def look(
        self, held: Iterable[AllocationFolder], reporting: Collection[str], now_ms: int
    ) -> None:
        """Note how far the workers are, but those that report it themselves."""
        if now_ms < self._due_ms:
            return
        self._due_ms = now_ms + EVERY_MS
        folders = {a.allocation_id: a.folder for a in held if is_read(a)}
        for name in self._meters.keys() - folders.keys():
            del self._meters[name]
        for name in folders:
            self._meters.setdefault(name, PrintedMeter())
        for name in [name for name in self._meters if name not in reporting][:MOST_WORKERS]:
            self._read(name, folders[name], now_ms)

    def _read(self, name: str, folder: str, now_ms: int) -> None:
        meter = self._meters[name] = self._meters.pop(name)
        if (measured := meter.note(read_tail(folder), now_ms)) is not None:
            self._note(name, measured)


def is_read(allocation: AllocationFolder) -> bool:
    """Return whether this worker runs, and speaks for a gang whose job enables it."""
    launch = allocation.launch
    is_enabled = launch.rank == 0 and launch.env.get(VARIABLE) == OUTPUT
    return is_enabled and allocation.phase == "running"


def read_tail(folder: str) -> bytes:
    """Return the end of the newest segment, empty where there is none."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name.removeprefix(NAME) for entry in entries if NAME in entry.name]
        newest = max(int(name) for name in names if name.isdecimal())
        descriptor = os.open(f"{folder}/{NAME}{newest}", os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, TAIL_BYTES, max(0, size - TAIL_BYTES))
    except OSError:
        return b""
    finally:
        os.close(descriptor)
