"""Marks of green runs, from which the next run goes on: the fields of all rules, and their rows."""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import secrets
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.bus.folds.fold_key import fold_key
from shared.bus.folds.snapshots import DIGEST_BYTES, UNREADABLE
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from shared.projections.source import LedgerPartition
from shared.verify.row_store import RowStore
from shared.verify.rules import Rule

ROOT = "shared.verify.run"
"""The module from which all rules are reached."""

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
    fields names the other by its hash, and is written last.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self) -> tuple[VerifyMark, RowStore]:
        """Return the last mark and its rows; without a usable one those of no run at all."""
        try:
            packed = self._path.read_bytes()
        except FileNotFoundError:
            return NO_MARK, RowStore()
        digest, body = packed[:DIGEST_BYTES], packed[DIGEST_BYTES:]
        if hashlib.sha256(body).digest() == digest:
            try:
                mark, rows, sha256 = pickle.loads(body)
                if _sha256(self._folder / rows) == sha256:
                    return mark, RowStore.copied_from(self._folder / rows)
            except (*UNREADABLE, OSError, sqlite3.Error):
                pass
        log.warning("damaged mark ignored", extra={"path": self._path.name})
        return NO_MARK, RowStore()

    def store(self, mark: VerifyMark, kept: RowStore) -> None:
        """Replace the last mark durably: a crash leaves the old one. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        rows = self._folder / f"{secrets.token_hex(6)}.rows"
        kept.copy_to(rows)
        _sync(rows)
        body = pickle.dumps((mark, rows.name, _sha256(rows)), protocol=pickle.HIGHEST_PROTOCOL)
        half = self._path.with_suffix(".half")
        half.write_bytes(hashlib.sha256(body).digest() + body)
        _sync(half)
        half.replace(self._path)
        _sync(self._folder)
        for old in (*self._folder.glob("*.rows"), *self._folder.glob("*.mark")):
            if old not in (rows, self._path):
                old.unlink(missing_ok=True)

    @property
    def _path(self) -> Path:
        return self._folder / f"{fold_key((ROOT,))}.mark"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
