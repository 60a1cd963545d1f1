"""The input of projections: the events of accepted records, with their data still as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from shared.ledger.reader import Accepted, Cursor

Payload = dict[str, Any]

_decode = msgspec.json.Decoder(Payload).decode


class NotFolded(ValueError):
    """A fold got an event of a type that it has no case for."""


class LedgerEvent(msgspec.Struct):
    """One event of an accepted record; there are millions, and a struct is made in less time."""

    ledger: str
    partition: int
    seq: int
    index: int
    at: int
    type: str
    subject: str
    data: Payload
    raw: bytes
    cause: str
    traceparent: str

    @property
    def position(self) -> str:
        """Return `partition/seq/index`, unique within the ledger."""
        return f"{self.partition}/{self.seq}/{self.index}"

    @property
    def id(self) -> str:
        """Return `ledger/partition/seq/index`, the id of its CloudEvent."""
        return f"{self.ledger}/{self.position}"


@dataclass(frozen=True, slots=True)
class LedgerBatch:
    """Events of consecutive records of one ledger partition, and the cursors around them."""

    ledger: str
    partition: int
    before: Cursor
    after: Cursor
    events: list[LedgerEvent]


def decode_events(records: Iterable[Accepted]) -> list[LedgerEvent]:
    """Return all events of the records in order, each decoded once."""
    decoded: list[LedgerEvent] = []
    for accepted in records:
        record = accepted.record
        place = accepted.ledger, accepted.partition, record.seq
        for index, stored in enumerate(record.events()):
            decoded.append(
                LedgerEvent(
                    *place,
                    index,
                    record.at,
                    stored.type,
                    stored.subject,
                    _decode(stored.data),
                    bytes(stored.data),
                    stored.cause,
                    stored.traceparent,
                )
            )
    return decoded
