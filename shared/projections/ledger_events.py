"""The input of projections: the events of accepted records, with their data still as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from shared.ledger.reader import Accepted, Cursor

Payload = dict[str, Any]


class NotFolded(ValueError):
    """A fold got an event of a type that it has no case for."""


@dataclass(slots=True)
class LedgerEvent:
    """One event of an accepted record."""

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
    return [
        LedgerEvent(
            accepted.ledger,
            accepted.partition,
            raw.seq,
            raw.index,
            raw.at,
            raw.type,
            raw.subject,
            msgspec.json.decode(raw.data),
            raw.data,
            raw.cause,
            raw.traceparent,
        )
        for accepted in records
        for raw in accepted.raw()
    ]
