"""Snapshots of a fold: a local cache that may vanish at any time."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from shared.bus.failpoints import FAILPOINTS
from shared.bus.folds.packed import UNREADABLE, Damaged, digest_of, pickled, unpack
from shared.ledger.reader import Cursor

S = TypeVar("S")
KEEP = 2
ABANDONED_S = 600

log = logging.getLogger(__name__)


class Snapshot(NamedTuple, Generic[S]):
    cursor: Cursor
    state: S


class Snapshots(Generic[S]):
    """The newest two snapshots of one lane; without a usable one the ledger is folded from 0.

    A snapshot is unusable if it is damaged or of another key: see `fold_key`. Those of the key
    before are kept for the way back to its code. A pickle is code, so no other user may write to
    the folder.
    """

    def __init__(self, folder: Path, ledger: str, partition: int, key: str) -> None:
        self._folder = folder
        self._lane = f"{ledger}-{partition}"
        self._prefix = f"{self._lane}-{key}-"
        self._mark = folder / f"{self._lane}.mark"

    @property
    def folder(self) -> Path:
        return self._folder

    def pack(self, cursor: Cursor, state: S) -> bytes:
        """Return the bytes for `store`; the state is copied here and may change.

        Nothing else is done here, as this holds the event loop of a service.
        """
        return pickled((cursor.to_json(), state))

    def store(self, seq: int, packed: bytes) -> None:
        """Store a packed snapshot atomically: a crash leaves the old ones. Blocks; use a thread.

        Raises OSError, as on a full disk, and leaves nothing of the new one then.
        """
        path = self._folder / f"{self._prefix}{seq:015d}.snapshot"
        with self._half_of(path) as half:
            with half.open("wb") as file:
                file.write(digest_of(packed))
                file.write(packed)
                file.flush()
                os.fsync(file.fileno())
            FAILPOINTS.hit("half_snapshot")
            half.replace(path)
        FAILPOINTS.hit("after_snapshot")
        self._tidy()

    def mark(self, cursor: Cursor) -> None:
        """Store the cursor alone, at little cost: the next start detects a lost tail by it.

        Raises OSError, as on a full disk; the mark before is kept then.
        """
        with self._half_of(self._mark) as half:
            half.write_bytes(cursor.to_json())
            half.replace(self._mark)

    def marked(self) -> Cursor:
        """Return the last mark; an empty cursor if there is none, or it is damaged."""
        try:
            return Cursor.from_json(self._mark.read_bytes())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return Cursor()

    def load(self) -> Snapshot[S] | None:
        """Return the newest usable snapshot."""
        for path in self._paths():
            snapshot = self._read(path)
            if snapshot is not None:
                return snapshot
        return None

    @contextmanager
    def _half_of(self, path: Path) -> Iterator[Path]:
        """Yield the path to write first, in a folder that exists; it is gone behind the block."""
        self._folder.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(f".{secrets.token_hex(6)}.half")
        try:
            yield half
        finally:
            half.unlink(missing_ok=True)

    def _tidy(self) -> None:
        """Delete old snapshots, and what killed processes have left of snapshots and marks."""
        abandoned = time.time() - ABANDONED_S
        for old in self._paths()[KEEP:]:
            old.unlink(missing_ok=True)
        self._tidy_other_keys()
        left = (self._folder.glob(f"{name}*.half") for name in (self._prefix, f"{self._lane}."))
        for half in chain(*left):
            try:
                if half.stat().st_mtime < abandoned:
                    half.unlink()
            except FileNotFoundError:
                continue

    def _tidy_other_keys(self) -> None:
        """Delete the snapshots of all other keys but the one that was stored last."""
        stored = {
            path: path.stat().st_mtime
            for path in self._folder.glob(f"{self._lane}-*.snapshot")
            if not path.name.startswith(self._prefix)
        }
        if not stored:
            return
        last, _, _ = max(stored, key=stored.__getitem__).name.rpartition("-")
        for path in stored:
            if path.name.rpartition("-")[0] != last:
                path.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(f"{self._prefix}*.snapshot"), reverse=True)

    def _read(self, path: Path) -> Snapshot[S] | None:
        try:
            packed = path.read_bytes()
        except OSError:
            return None
        try:
            cursor, state = unpack(packed)
        except Damaged:
            log.warning("damaged snapshot ignored", extra={"path": path.name})
            return None
        except UNREADABLE:
            log.warning("snapshot of other code ignored", extra={"path": path.name})
            return None
        return Snapshot(Cursor.from_json(cursor), state)
