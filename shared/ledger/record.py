"""One record of a ledger: what one append decided, and the inputs it used up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

LIMIT_BYTES = 512 * 1024
"""Batches are cut to this; a single input's record may reach the broker's own limit."""

Position: TypeAlias = int | tuple[int, int, str]
"""Next offset of an input; a ledger's has the reader's state too: (next, seq, id)."""


class StoredEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event as it lies in a record; `data` is the model's JSON."""

    type: str
    subject: str
    data: msgspec.Raw
    cause: str = ""
    traceparent: str = ""


class Record(msgspec.Struct, frozen=True):
    """The envelope, on which alone acceptance depends; the events are decoded later."""

    id: str
    seq: int
    prev: str
    w: str
    at: int
    inputs: dict[str, Position] = msgspec.field(name="in")
    ev: msgspec.Raw

    def events(self) -> list[StoredEvent]:
        return _events.decode(self.ev)


_encoder = msgspec.json.Encoder()
_records = msgspec.json.Decoder(Record)
_events = msgspec.json.Decoder(list[StoredEvent])


def pack(events: Sequence[StoredEvent]) -> msgspec.Raw:
    return msgspec.Raw(_encoder.encode(events))


def encode(record: Record) -> bytes:
    return _encoder.encode(record)


def decode(value: bytes | None) -> Record | None:
    """Return None for bytes that are no envelope: every reader ignores them."""
    if value is None:
        return None
    try:
        return _records.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def next_of(position: Position) -> int:
    return position if isinstance(position, int) else position[0]
