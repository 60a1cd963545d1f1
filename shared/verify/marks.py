"""Marks of green runs, from which the next run goes on: the fields of all rules, and their rows."""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.bus.folds.fold_key import fold_key
from shared.bus.folds.packed import UNREADABLE, pack, unpack
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from shared.process.durable_files import sha256_of_file, sync
from shared.projections.source import LedgerPartition
from shared.verify.anchors import Anchor
from shared.verify.row_store import RowStore
from shared.verify.rules import Rule

ROOT = "shared.verify.run"
"""The module from which all rules are reached."""

MARK, ROWS, HALF, LOCK = ".mark", ".rows", ".half", "lock"
"""The file of fields, that of rows, a file of fields that is being written, and the lock."""

JOURNAL = f"{ROWS}-journal"
"""The file of SQLite beside one of rows that is being written."""

UNUSABLE = (*UNREADABLE, OSError, sqlite3.Error)
"""Errors in reading a mark that is damaged, or that no code can read any more."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VerifyMark:
    """Up to where a run found no violation; the next one reads on from here."""

    made_ms: int = 0
    cursors: Mapping[LedgerPartition, Cursor] = field(default_factory=dict)
    """Up to where ledgers need not be read again; the rows of Postgres were compared up to here."""
    seqs: Mapping[LedgerPartition, int] = field(default_factory=dict)
    """Last seq that all other rules have observed; not before the cursors."""
    topics: Mapping[TP, int] = field(default_factory=dict)
    """First offset to read of each partition that is not a ledger's."""
    anchors: Mapping[TP, Anchor] = field(default_factory=dict)
    """The last record of each of these partitions."""
    carried: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Fields of each rule by its name."""
    pending: frozenset[str] = frozenset()
    """Ids of observed events that were not published yet."""
    has_rows: bool = False
    """The rows of Postgres were compared."""

    def has(self, event_id: str) -> bool:
        """Return whether the run before has compared this event with the topic `events`."""
        ledger, *numbers = event_id.split("/")
        if not self.seqs or len(numbers) != 3 or not all(map(str.isdecimal, numbers)):
            return False
        is_observed = int(numbers[1]) <= self.seqs.get((ledger, int(numbers[0])), 0)
        return is_observed and event_id not in self.pending

    def give(self, rules: Iterable[Rule]) -> None:
        """Set the fields of the rules to those of the run before."""
        for rule in rules:
            for name, value in self.carried.get(rule.name, {}).items():
                setattr(rule, name, value)


NO_MARK = VerifyMark()


def fields_of(rules: Iterable[Rule]) -> dict[str, dict[str, Any]]:
    """Return what the next run needs of each rule."""
    return {rule.name: {name: getattr(rule, name) for name in rule.CARRIED} for rule in rules}


class Marks:
    """The last mark of an installation in a folder of its data.

    A pickle is code, so no other user may write to the folder. A mark of other rules or of another
    decoder is not used: its key is that of their code. Two files make a mark; the one with the
    fields names the other by its hash, and is written last. Runs at the same time wait for each
    other while one reads or writes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self) -> tuple[VerifyMark, RowStore]:
        """Return the last mark and its rows; without a usable one those of no run at all."""
        if not self._path.exists():
            return NO_MARK, RowStore()
        try:
            with self._locked(fcntl.LOCK_SH):
                mark, rows, sha256 = self._read()
                if sha256_of_file(rows) == sha256:
                    return mark, RowStore.copied_from(rows)
        except UNUSABLE:
            pass
        log.warning("damaged mark ignored", extra={"path": self._path.name})
        return NO_MARK, RowStore()

    def store(self, mark: VerifyMark, kept: RowStore) -> bool:
        """Replace the last mark durably, and return whether that worked.

        A crash or an error, such as a full disk, leaves the old mark.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._locked(fcntl.LOCK_EX):
                self._remove_others(self._rows_in_use())
                self._write(mark, kept)
        except (OSError, sqlite3.Error) as error:
            log.warning("the mark was not stored: %s", error, extra={"path": self._path.name})
            return False
        return True

    def _write(self, mark: VerifyMark, kept: RowStore) -> None:
        rows = self._folder / f"{secrets.token_hex(6)}{ROWS}"
        half = self._path.with_suffix(HALF)
        try:
            kept.copy_to(rows)
            sync(rows)
            half.write_bytes(pack((mark, rows.name, sha256_of_file(rows))))
            sync(half)
            half.replace(self._path)
        except BaseException:
            rows.unlink(missing_ok=True)
            half.unlink(missing_ok=True)
            raise
        sync(self._folder)
        self._remove_others(rows)

    def _read(self) -> tuple[VerifyMark, Path, str]:
        """Return the mark, its file of rows and the SHA-256 that this has to have."""
        mark, rows, sha256 = unpack(self._path.read_bytes())
        return mark, self._folder / rows, sha256

    def _rows_in_use(self) -> Path | None:
        try:
            return self._read()[1]
        except UNUSABLE:
            return None

    def _remove_others(self, rows: Path | None) -> None:
        """Remove what runs that were killed, and other versions, have left beside the mark."""
        for suffix in (ROWS, JOURNAL, HALF, MARK):
            for file in self._folder.glob(f"*{suffix}"):
                if file not in (rows, self._path):
                    file.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Hold the lock of the folder; it ends with the process too."""
        descriptor = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)

    @property
    def _path(self) -> Path:
        return self._folder / f"{fold_key((ROOT,))}{MARK}"
