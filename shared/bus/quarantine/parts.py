"""The parts of an input record, when it raises: what each of several senders said in it.

A record of a ledger holds facts of many tenants, one of an executor reports of many nodes. The
parts on which a decider raises are quarantined alone, and the others are decided.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from shared.bus.inputs.gather import Batch
from shared.bus.inputs.inbox import PendingRecord
from shared.contracts.topics import LEDGERS
from shared.ledger import cloudevents
from shared.ledger.decider import Input
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.ledger.record import decode

MOST_RAISING = 16
"""Parts of one record that are quarantined alone; with more of them it is quarantined whole."""


class Part(NamedTuple):
    """A whole input, or one entry of the list of an input that has several senders."""

    input: Input
    entry: int | None = None
    """Its place in the list; None: the whole input."""

    @property
    def alone(self) -> Input:
        """The part as an input of its own."""
        return self.input if self.entry is None else _only(self.input, [self.entry])


Raising = list[tuple[Part, Exception]]
"""Parts on which a decider raises, each with its error."""


def parts_of(batch: Batch) -> list[Part]:
    """Return the parts of the batch, in their order; what is decided again is no part of its own.

    A request to decide an input again stands for what it leads to.
    """
    inputs = [local.input for local in batch.locals]
    inputs.extend(item for record in batch.records for item in record.inputs)
    return [part for item in inputs for part in split(item)]


def split(item: Input) -> list[Part]:
    """Return the parts of one input."""
    entries = len(_entries(item))
    return [Part(item, entry) for entry in range(entries)] if entries > 1 else [Part(item)]


def only(batch: Batch, parts: Sequence[Part]) -> Batch:
    """Return the batch with these of its parts alone."""
    kept: dict[str, list[int | None]] = {}
    for part in parts:
        kept.setdefault(part.input.id, []).append(part.entry)
    locals_ = [
        replace(local, input=_kept(local.input, kept[local.input.id]))
        for local in batch.locals
        if local.input.id in kept
    ]
    records = [_record(record, kept) for record in batch.records]
    return Batch(locals_, records, tuple(r for r in batch.retried if r.request in kept))


async def blame(
    parts: Sequence[Part], attempt: Callable[[Sequence[Part], Raising], Awaitable[Exception | None]]
) -> Raising | None:
    """Return the parts on which `attempt` fails, which has decided all others at the end.

    `attempt` gets the parts that it should decide, and those known to raise, and returns the
    error on which it failed. None: too many fail, or no part is to blame.
    """
    good, raising = list(parts), Raising()
    while (error := await attempt(good, raising)) is not None:
        if not good or len(raising) == MOST_RAISING:
            return None
        passing, failing = 0, len(good)
        while failing - passing > 1:
            middle = (passing + failing) // 2
            earlier = await attempt(good[:middle], raising)
            if earlier is None:
                passing = middle
            else:
                failing, error = middle, earlier
        raising.append((good.pop(failing - 1), error))
    return raising


def bytes_of(tp: TP, offset: int, value: bytes, part: Part) -> bytes | None:
    """Return the bytes of one part of the record; None if it is not there."""
    if tp.topic not in LEDGERS:
        body = cloudevents.decode_input(value).body
        if part.entry is None:
            return value
        entries = msgspec.json.decode(body, type=dict[str, msgspec.Raw])[_name(part.input)]
        raw = msgspec.json.decode(entries, type=list[msgspec.Raw])
        return bytes(raw[part.entry]) if part.entry < len(raw) else None
    return next(iter(_of_fact(tp, offset, value, part.input.id)), None)


def find(
    tp: TP, offset: int, value: bytes, inputs: Sequence[Input], message_id: str, sha256: str
) -> Input | None:
    """Return the part of the record with this message and these bytes, as an input of its own."""
    for item in inputs:
        for part in split(item) if item.id == message_id else ():
            own = bytes_of(tp, offset, value, part)
            if own is not None and hashlib.sha256(own).hexdigest() == sha256:
                return part.alone
    return None


def find_bytes(tp: TP, offset: int, value: bytes, message_id: str, sha256: str) -> bytes | None:
    """Return the bytes of the part of the record with this message and fingerprint."""
    candidates = (
        _of_fact(tp, offset, value, message_id)
        if tp.topic in LEDGERS
        else _entries_of_lists(cloudevents.decode_input(value).body)
    )
    matching = (own for own in candidates if hashlib.sha256(own).hexdigest() == sha256)
    return next(matching, None)


def _of_fact(tp: TP, offset: int, value: bytes, fact_id: str) -> list[bytes]:
    record = decode(value)
    if record is None:
        return []
    accepted = Accepted(tp.topic, tp.partition, offset, record)
    return [raw.data for raw in accepted.raw() if accepted.fact_id(raw.index) == fact_id]


def _entries_of_lists(body: bytes) -> list[bytes]:
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw]).values()
    lists = [bytes(field) for field in fields if bytes(field).lstrip()[:1] == b"["]
    raws = (raw for value in lists for raw in msgspec.json.decode(value, type=list[msgspec.Raw]))
    return [bytes(raw) for raw in raws]


def _record(record: PendingRecord, kept: dict[str, list[int | None]]) -> PendingRecord:
    inputs = tuple(_kept(item, kept[item.id]) for item in record.inputs if item.id in kept)
    return replace(record, inputs=inputs)


def _kept(item: Input, entries: list[int | None]) -> Input:
    if None in entries or len(entries) == len(_entries(item)):
        return item
    return _only(item, [entry for entry in entries if entry is not None])


def _only(item: Input, entries: list[int]) -> Input:
    every = _entries(item)
    kept = tuple(every[entry] for entry in entries)
    message: Any = item.message
    return item._replace(message=message.model_copy(update={_name(item): kept}))


def _entries(item: Input) -> tuple[Any, ...]:
    name = _name(item)
    return getattr(item.message, name) if name else ()


def _name(item: Input) -> str:
    return str(getattr(item.message, "PARTS", ""))
