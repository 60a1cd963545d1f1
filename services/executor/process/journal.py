"""Journal of the workers started on this host: each step is on disk before it is done."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Container
from io import BufferedRandom
from pathlib import Path
from typing import Literal

import msgspec

from shared.bus.failpoints import FAILPOINTS

COMPACT_LINES = 2_000


class JournalDamaged(RuntimeError):
    """A whole line of the journal is unreadable: its worker may still run."""


class JournalBusy(RuntimeError):
    """Another executor of the same name runs on this host."""


class JournalEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """State of one worker; a later line of the same allocation replaces an earlier one."""

    allocation_id: str
    state: Literal["starting", "running", "ended", "stopped", "forgotten"]
    token: str = ""
    pid: int = 0
    started_ticks: int = 0
    exit_code: int | None = None
    ran_ms: int = 0


_decoder = msgspec.json.Decoder(JournalEntry)
_encoder = msgspec.json.Encoder()


class Journal:
    """One line per step. `write` returns only when the disk has it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._lock = (path.with_suffix(".lock")).open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise JournalBusy(f"{path}: in use by another process") from None
        try:
            self._entries = _read(path)
        except JournalDamaged:
            self._lock.close()
            raise
        self._lines = 0
        self._file = self._rewrite()

    @property
    def entries(self) -> list[JournalEntry]:
        """Entries of all workers that are not forgotten, oldest first."""
        return list(self._entries.values())

    def write(self, entry: JournalEntry) -> None:
        FAILPOINTS.hit("before_journal")
        self._file.write(_encoder.encode(entry) + b"\n")
        self._file.flush()
        os.fdatasync(self._file.fileno())
        FAILPOINTS.hit("after_journal")
        _apply(self._entries, entry)
        self._lines += 1
        if self._lines > COMPACT_LINES and self._lines > 4 * len(self._entries):
            self._file.close()
            self._file = self._rewrite()

    def has(self, allocation_id: str) -> bool:
        return allocation_id in self._entries

    def forget(self, allocation_id: str) -> None:
        """Drop a worker whose end is in the ledger."""
        if self.has(allocation_id):
            self.write(JournalEntry(allocation_id, "forgotten"))

    def keep(self, prefix: str, wanted: Container[str]) -> None:
        """Forget all allocations with this prefix but the wanted ones."""
        for allocation_id in list(self._entries):
            if allocation_id.startswith(prefix) and allocation_id not in wanted:
                self.forget(allocation_id)

    def close(self) -> None:
        self._file.close()
        self._lock.close()

    def _rewrite(self) -> BufferedRandom:
        """Replace the file by the present entries, atomically."""
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.writelines(_encoder.encode(entry) + b"\n" for entry in self._entries.values())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        _sync_folder(self._path.parent)
        self._lines = len(self._entries)
        return self._path.open("ab+")


def _read(path: Path) -> dict[str, JournalEntry]:
    entries: dict[str, JournalEntry] = {}
    if not path.exists():
        return entries
    lines = path.read_bytes().split(b"\n")
    # A line without its end was being written when the machine stopped: nothing followed from it.
    for line in lines[:-1]:
        try:
            _apply(entries, _decoder.decode(line))
        except msgspec.MsgspecError as error:
            raise JournalDamaged(f"{path}: {error}") from None
    return entries


def _apply(entries: dict[str, JournalEntry], entry: JournalEntry) -> None:
    if entry.state == "forgotten":
        entries.pop(entry.allocation_id, None)
    else:
        entries[entry.allocation_id] = entry


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
