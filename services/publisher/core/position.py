"""Where the publisher stands in the ledgers of one lane, as it travels with what it wrote."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from shared.ledger.reader import Accepted, Cursor

HEADER = "berth-cursor"


@dataclass(slots=True)
class LedgerPosition:
    """A reader's state in one ledger, and the pool or endpoint that this ledger last named."""

    cursor: Cursor = field(default_factory=Cursor)
    pool: str = ""


LanePositions = dict[str, LedgerPosition]
"""By ledger: all of one lane."""

Wire = dict[str, tuple[int, int, str, int, int, str]]


def after(accepted: Accepted) -> Cursor:
    """The reader's state behind this record; its input vector is not needed to go on."""
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
    """Raises msgspec.MsgspecError for what no publisher wrote."""
    found = msgspec.json.decode(value, type=Wire)
    return {ledger: LedgerPosition(Cursor(*wire[:5]), wire[5]) for ledger, wire in found.items()}
