"""What a projection reads: the events of accepted records, still as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from shared.ledger.reader import Accepted, Cursor

Payload = dict[str, Any]


@dataclass(slots=True)
class LedgerEvent:
    """One event of an accepted record, in the order of its ledger."""

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
        return f"{self.partition}/{self.seq}/{self.index}"


@dataclass(frozen=True, slots=True)
class LedgerBatch:
    """Accepted records of one ledger partition, and where the reader stood before and after."""

    ledger: str
    partition: int
    before: Cursor
    after: Cursor
    events: list[LedgerEvent]


def decode_events(records: Iterable[Accepted]) -> list[LedgerEvent]:
    """Every event, decoded once."""
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
