"""The publisher's position in the ledgers of one lane, stored with the events that it writes."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from shared.ledger.reader import Accepted, Cursor

HEADER = "berth-cursor"


@dataclass(slots=True)
class LedgerPosition:
    """Reader state in one ledger, and the pool or endpoint that the ledger named last."""

    cursor: Cursor = field(default_factory=Cursor)
    pool: str = ""


LanePositions = dict[str, LedgerPosition]
"""Positions of one lane, by ledger."""

Wire = dict[str, tuple[int, int, str, int, int, str]]


def after(accepted: Accepted) -> Cursor:
    """Return the reader state after the record, without the input vector."""
    record = accepted.record
    return Cursor(accepted.offset + 1, record.seq, record.id, accepted.offset, record.at)


def encode(positions: LanePositions) -> bytes:
    return msgspec.json.encode(
        {
            ledger: (c.next, c.seq, c.id, c.offset, c.at, position.pool)
            for ledger, position in positions.items()
            if (c := position.cursor).next
        }
    )


def decode(value: bytes) -> LanePositions:
    """Return the positions; raises msgspec.MsgspecError for malformed bytes."""
    fields = msgspec.json.decode(value, type=Wire)
    return {ledger: LedgerPosition(Cursor(*wire[:5]), wire[5]) for ledger, wire in fields.items()}
