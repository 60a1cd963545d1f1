"""Follows the records of a partition, archived or not, and checks that none is missing."""

from __future__ import annotations

from shared.bus.archive.segment import sha256_of
from shared.bus.logs.log import Entry
from shared.contracts.topics import LEDGERS
from shared.ledger.errors import NotDense
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor, Reader
from shared.ledger.record import decode


class Walk:
    """The position of a reader of all records: in a ledger by its rule, in an input by offsets.

    The records of an input have no numbers of their own: there `seq` is their count, and `id` the
    hash of the last one.
    """

    def __init__(self, tp: TP, cursor: Cursor | None = None) -> None:
        self.tp = tp
        self._reader = Reader(*tp, cursor) if tp.topic in LEDGERS else None
        self._cursor = cursor or Cursor()

    @property
    def cursor(self) -> Cursor:
        return self._reader.cursor if self._reader is not None else self._cursor

    def offer(self, entry: Entry) -> None:
        """Take the next record. Raises ProtocolViolation for one that cannot be there."""
        if self._reader is not None:
            self._reader.offer(entry.offset, entry.value)
            return
        c = self._cursor
        if entry.offset != c.next:
            raise NotDense(f"{self.tp.key}: offset {entry.offset} came where {c.next} is due")
        self._cursor = Cursor(c.next + 1, c.seq + 1, identity(self.tp, entry) or "", entry.offset)


def identity(tp: TP, entry: Entry) -> str | None:
    """Return what identifies a record at its offset; None for one of a ledger that
    cannot be read."""
    if tp.topic not in LEDGERS:
        return sha256_of(entry.value or b"")
    record = decode(entry.value)
    return None if record is None else record.id
