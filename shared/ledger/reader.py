"""The reader rule: which records of a ledger count. Every reader of a ledger applies it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from shared.contracts.base import EVENTS, UnknownType
from shared.contracts.codec import decode_event
from shared.ledger.decider import Fact
from shared.ledger.errors import ChainBroken, NotDense, VectorWentBack
from shared.ledger.record import Position, Record, decode, next_of

IGNORED_MOST = 1_000
"""Records in a row that a reader may ignore."""


class Cursor(msgspec.Struct, frozen=True):
    """The position of a reader: enough to go on, and to notice that the log is not the same one.

    `next` is the next offset to read; `offset`, `id`, `seq`, `at` and `inputs` are those of the
    last accepted record (-1 and "" before the first).
    """

    next: int = 0
    seq: int = 0
    id: str = ""
    offset: int = -1
    at: int = 0
    inputs: dict[str, Position] = {}

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, value: bytes | str) -> Cursor:
        return msgspec.json.decode(value, type=cls)


class RawFact(NamedTuple):
    """A fact with its event as bytes, for readers that only forward it."""

    type: str
    subject: str
    data: bytes
    cause: str
    traceparent: str
    seq: int
    index: int  # type: ignore[assignment]
    at: int


class Accepted:
    """A record that counts."""

    __slots__ = ("ledger", "offset", "partition", "record", "unknown")

    def __init__(self, ledger: str, partition: int, offset: int, record: Record) -> None:
        self.ledger = ledger
        self.partition = partition
        self.offset = offset
        self.record = record
        self.unknown = 0

    def fact_id(self, index: int) -> str:
        return f"{self.ledger}/{self.partition}/{self.record.seq}/{index}"

    def raw(self) -> Iterator[RawFact]:
        seq, at = self.record.seq, self.record.at
        for index, e in enumerate(self.record.events()):
            yield RawFact(e.type, e.subject, bytes(e.data), e.cause, e.traceparent, seq, index, at)

    def facts(self, *, own: bool = False, consumed: frozenset[str] | None = None) -> list[Fact]:
        """Return the decoded events; unknown types of another's ledger are counted and skipped.

        With `own` an unknown type raises UnknownType. `consumed` restricts the types: decoding is
        most of the work of a reader.
        """
        facts: list[Fact] = []
        self.unknown = 0
        seq, at = self.record.seq, self.record.at
        for index, stored in enumerate(self.record.events()):
            if consumed is not None and stored.type not in consumed:
                self.unknown += stored.type not in EVENTS
                continue
            try:
                event = decode_event(stored.type, bytes(stored.data))
            except UnknownType:
                if own:
                    raise
                self.unknown += 1
                continue
            place = (self.ledger, self.partition, seq, index, at)
            facts.append(Fact(event, *place, stored.cause, stored.traceparent))
        return facts


class Reader:
    """R1-R6 of the protocol; acceptance looks at the envelope only."""

    __slots__ = ("cursor", "ignored", "ledger", "partition")

    def __init__(self, ledger: str, partition: int, cursor: Cursor | None = None) -> None:
        self.ledger = ledger
        self.partition = partition
        self.cursor = cursor or Cursor()
        self.ignored = 0

    @property
    def position(self) -> Position:
        """This ledger's entry in the input vector of its reader."""
        return (self.cursor.next, self.cursor.seq, self.cursor.id)

    def offer(self, offset: int, value: bytes | None) -> Accepted | None:
        """Return the record at `offset` if it is accepted; offer every offset, in order."""
        return self.offer_record(offset, decode(value))

    def offer_record(self, offset: int, record: Record | None) -> Accepted | None:
        c = self.cursor
        if offset != c.next:
            raise NotDense(f"{self._place}: offset {offset} came where {c.next} is due")
        if record is None or record.seq != c.seq + 1 or record.prev != c.id:
            self._check_ignored(offset)
            self.ignored += 1
            self.cursor = Cursor(offset + 1, c.seq, c.id, c.offset, c.at, c.inputs)
            return None
        self._check_vector(record)
        self.cursor = Cursor(offset + 1, record.seq, record.id, offset, record.at, record.inputs)
        return Accepted(self.ledger, self.partition, offset, record)

    def _check_ignored(self, offset: int) -> None:
        """Raise ChainBroken where too many records in a row are ignored: a writer that lost a race
        leaves a few, but the records of another log, or its fillers, would pass as an empty one.
        """
        c = self.cursor
        if offset - c.offset > IGNORED_MOST:
            raise ChainBroken(
                f"{self._place}: none of the {offset - c.offset} records from offset"
                f" {c.offset + 1} to {offset} follows record {c.seq}: it is another log, or a part"
                " is missing"
            )

    def _check_vector(self, record: Record) -> None:
        for key, position in self.cursor.inputs.items():
            after = record.inputs.get(key, 0)
            if after == position:
                continue
            new = next_of(after)
            if new < next_of(position):
                raise VectorWentBack(
                    f"{self._place}: seq {record.seq} has {key} at {new} after {position}"
                )

    @property
    def _place(self) -> str:
        return f"{self.ledger}-{self.partition}"
