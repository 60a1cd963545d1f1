"""Rows of the read models and of a fold of the ledgers, compared in little memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Self, TypeAlias

import msgspec
import numpy as np

Figures: TypeAlias = tuple[object, ...]
"""The columns of a row except for its key."""

CACHE_KIB = 64 * 1024
"""Of rows that are kept in memory; the others are in a file that ends with the process."""

BATCH = 10_000
"""Rows that are written at once, and read at once."""

FILTER_BYTES = 2**24
PLACE_MASK = 8 * FILTER_BYTES - 1

SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{cache};
CREATE TABLE row (name TEXT, key TEXT, figures BLOB, ended_at INTEGER, PRIMARY KEY (name, key))
WITHOUT ROWID;
"""
PUT = "INSERT OR REPLACE INTO row VALUES (?, ?, ?, ?)"
GET = "SELECT figures FROM row WHERE name = ? AND key = ?"
DROP = """
DELETE FROM row WHERE name = ? AND key >= ? AND key < ? AND ended_at > 0 AND ended_at < ?
"""
ALL = "SELECT key, figures FROM row WHERE name = ? ORDER BY key"

LAST = "\U0010ffff"
"""Comes behind every other character."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[object, ...]).decode


class KeyFilter:
    """The keys that may be in the file: nearly all that are read are new, and need no search there.

    Each key sets two bits; of a new one both are set with a chance of 0.1 % at two million keys.
    """

    def __init__(self) -> None:
        self._bits = bytearray()

    def set_all(self) -> None:
        """Let every key be one that may be there."""
        self._bits = bytearray(b"\xff" * FILTER_BYTES)

    def add(self, keys: Collection[tuple[str, str]]) -> None:
        self._bits = self._bits or bytearray(FILTER_BYTES)
        bits = np.frombuffer(self._bits, np.uint8)
        numbers = np.fromiter(map(hash, keys), np.int64, len(keys))
        for places in (numbers & PLACE_MASK, numbers >> 32 & PLACE_MASK):
            np.bitwise_or.at(bits, places >> 3, (1 << (places & 7)).astype(np.uint8))

    def may_have(self, key: tuple[str, str]) -> bool:
        bits, number = self._bits, hash(key)
        place = number & PLACE_MASK
        if not bits or not bits[place >> 3] >> (place & 7) & 1:
            return False
        place = number >> 32 & PLACE_MASK
        return bool(bits[place >> 3] >> (place & 7) & 1)


class RowStore:
    """Rows by table and key, of which the last ones that were written are in memory."""

    def __init__(self) -> None:
        # A database without a name is a file of its own, which ends with the connection.
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.executescript(SCHEMA.format(cache=CACHE_KIB))
        self._recent: dict[tuple[str, str], tuple[Figures, int]] = {}
        self._written = KeyFilter()

    @classmethod
    def copied_from(cls, path: Path) -> Self:
        """Return a store with the rows of a file; it changes no more with it.

        Raises sqlite3.Error for a file that is none of `copy_to`.
        """
        store = cls()
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source:
            source.backup(store._file)
        store._written.set_all()
        return store

    def copy_to(self, path: Path) -> None:
        """Copy all rows into a new file."""
        self._write()
        with closing(sqlite3.connect(path)) as target:
            self._file.backup(target)

    def put(self, table: str, key: str, figures: Figures, ended_at: int = 0) -> None:
        """Set a row; one that has ended can be dropped by that time."""
        self._recent[table, key] = figures, ended_at
        if len(self._recent) >= BATCH:
            self._write()

    def get(self, table: str, key: str) -> Figures | None:
        recent = self._recent.get((table, key))
        if recent is not None:
            return recent[0]
        if not self._written.may_have((table, key)):
            return None
        row = self._file.execute(GET, (table, key)).fetchone()
        return None if row is None else _decode(row[0])

    def rows(self, table: str) -> Iterator[tuple[str, Figures]]:
        """Yield the rows of a table by their keys, in order."""
        self._write()
        for key, figures in self._file.execute(ALL, (table,)):
            yield key, _decode(figures)

    def drop(self, table: str, prefix: str, before: int) -> None:
        """Drop the rows with keys that begin so, and that ended before a time."""
        self._write()
        self._file.execute(DROP, (table, prefix, f"{prefix}{LAST}", before))

    def _write(self) -> None:
        self._written.add(self._recent)
        self._file.execute("BEGIN")
        rows = (
            (table, key, _encode(figures), ended_at)
            for (table, key), (figures, ended_at) in self._recent.items()
        )
        self._file.executemany(PUT, rows)
        self._file.execute("COMMIT")
        self._recent.clear()


Difference: TypeAlias = tuple[str, Figures | None, Figures | None]
"""A key, and its rows on both sides."""


def side_by_side(
    first: Iterator[tuple[str, Figures]], second: Iterator[tuple[str, Figures]]
) -> Iterator[Difference]:
    """Yield every key of either side with its rows; both sides come in the order of keys."""
    one, two = next(first, None), next(second, None)
    while one is not None or two is not None:
        if two is None or (one is not None and one[0] < two[0]):
            assert one is not None
            yield one[0], one[1], None
            one = next(first, None)
        elif one is None or two[0] < one[0]:
            yield two[0], None, two[1]
            two = next(second, None)
        else:
            yield one[0], one[1], two[1]
            one, two = next(first, None), next(second, None)
