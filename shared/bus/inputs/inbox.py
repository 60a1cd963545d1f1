"""The inputs of one lane that are read, and not yet in an accepted record."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from shared.contracts.topics import LEDGERS
from shared.ledger.decider import Input
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor, Reader
from shared.ledger.record import Position, next_of

Delivery = Literal["ok", "old", "gap"]
"""Outcome of a delivery: accepted, read before, or not the next record of its input."""

ACCESS = TP("access", 0)
ACCESS_KEY = ACCESS.key

LIMIT_INPUTS = 5_000
LIMIT_BYTES = 16 * 1024 * 1024
BATCH_RECORDS = 1_000


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """One record of an input; `position` is that input's entry in the vector once it is used."""

    key: str
    offset: int
    position: Position
    inputs: tuple[Input, ...]
    size: int
    access_next: int
    """Next offset of `access` when its writer decided."""
    error: Exception | None = None
    """The error on which the record could not be decoded into inputs."""

    @property
    def weight(self) -> int:
        """Inputs that it counts for in a batch; 0: it can lead to nothing."""
        return len(self.inputs) + (self.error is not None)


class Channel:
    """The position in one input, ahead of the decisions."""

    def __init__(self, tp: TP, decoder: InputDecoder) -> None:
        self.tp = tp
        self._decoder = decoder
        self._reader = Reader(tp.topic, tp.partition) if tp.topic in LEDGERS else None
        self.next = 0

    def move_to(self, position: Position) -> None:
        """Continue after the records that a rival has used."""
        self.next = next_of(position)
        if self._reader is not None and not isinstance(position, int):
            self._reader.cursor = Cursor(*position)

    @property
    def ignored(self) -> int:
        """Records of this input that the reader rule ignored."""
        return self._reader.ignored if self._reader is not None else 0

    def take(self, offset: int, value: bytes | None) -> PendingRecord:
        """Decode the record at `offset`, which is the next one."""
        self.next = offset + 1
        size = len(value or b"")
        accepted = self._reader.offer(offset, value) if self._reader is not None else None
        position = self.next if self._reader is None else self._reader.position
        access_next = next_of(accepted.record.inputs.get(ACCESS_KEY, 0)) if accepted else 0
        try:
            inputs = self._decode(offset, value, accepted)
        except Exception as error:
            return PendingRecord(self.tp.key, offset, position, (), size, access_next, error)
        if self._reader is None:
            access_next = max((item.access_next for item in inputs), default=0)
        return PendingRecord(self.tp.key, offset, position, tuple(inputs), size, access_next)

    def _decode(self, offset: int, value: bytes | None, accepted: Accepted | None) -> list[Input]:
        if self._reader is None:
            return self._decoder.decode_plain(self.tp, offset, value)
        return self._decoder.decode_ledger(accepted) if accepted else []


class Inbox:
    """The undecided records of all inputs, in order of arrival; bounded, so it pushes back.

    It begins exactly at the vector of the last accepted record. Inputs that led to nothing stay in
    front, counted as silent, until a record carries them. A record whose writer had read more of
    `access` than this lane is held back, and those after it too: a user may submit a job as soon
    as its tenant is registered.
    """

    def __init__(self, inputs: Iterable[TP], decoder: InputDecoder) -> None:
        self.decoder = decoder
        self._channels = {tp.key: Channel(tp, decoder) for tp in inputs}
        self._access = self._channels.get(ACCESS_KEY)
        self._waiting: deque[PendingRecord] = deque()
        self._held: deque[PendingRecord] = deque()
        self._inputs = 0
        self._bytes = 0
        self.silent = 0
        self._closed = False
        self._room = asyncio.Event()
        self._room_for_access = asyncio.Event()
        self._update_room()

    @property
    def pending(self) -> int:
        """Records that are not decided yet."""
        return len(self._waiting) - self.silent

    @property
    def pending_inputs(self) -> int:
        return self._inputs

    @property
    def ignored(self) -> int:
        """Records of its ledgers that the reader rule ignored, since this inbox began."""
        return sum(channel.ignored for channel in self._channels.values())

    @property
    def is_holding(self) -> bool:
        """Return whether a record waits until `access` is read further."""
        return bool(self._held)

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    async def wait_for_room(self, tp: TP) -> None:
        """Return once there is room for a record of that input, or the inbox is closed."""
        await (self._room_for_access if tp == ACCESS else self._room).wait()

    def close(self) -> None:
        """Let every `wait_for_room` return."""
        self._closed = True
        self._update_room()

    def next_offsets(self) -> dict[TP, int]:
        """Return the next offset of each input."""
        return {channel.tp: channel.next for channel in self._channels.values()}

    def skip_to(self, tp: TP, offset: int) -> None:
        """Continue an input at its first record that retention has left."""
        self._channels[tp.key].move_to(offset)

    def put(self, tp: TP, offset: int, value: bytes | None) -> Delivery:
        """Take a record if it is the next one of its input."""
        channel = self._channels[tp.key]
        if offset != channel.next:
            return "old" if offset < channel.next else "gap"
        record = channel.take(offset, value)
        self._inputs += len(record.inputs)
        self._bytes += record.size
        if tp == ACCESS:
            self._waiting.append(record)
        else:
            self._held.append(record)
        self._release_due()
        return "ok"

    def release_held(self) -> None:
        """Release every record: `access` ends before them, as after a restore of an older copy."""
        self._waiting.extend(self._held)
        self._held.clear()
        self._update_room()

    def batch(self, max_inputs: int, max_bytes: int) -> list[PendingRecord]:
        """Return the oldest undecided records; at least one when there is any."""
        records: list[PendingRecord] = []
        inputs = size = 0
        for record in islice(self._waiting, self.silent, None):
            inputs += record.weight
            size += record.size
            is_full = inputs > max_inputs or size > max_bytes or len(records) >= BATCH_RECORDS
            if records and is_full:
                break
            records.append(record)
        return records

    def note_silent(self, records: Iterable[PendingRecord]) -> None:
        """Count records that were decided without an event; they need no record of their own."""
        for record in records:
            self.silent += 1
            self._inputs -= len(record.inputs)
            self._bytes -= record.size
        self._update_room()

    def vector(
        self, base: Mapping[str, Position], records: Iterable[PendingRecord]
    ) -> dict[str, Position]:
        """Return the input vector of a record that uses the silent ones and `records`."""
        vector = dict(base)
        for record in islice(self._waiting, self.silent):
            vector[record.key] = record.position
        for record in records:
            vector[record.key] = record.position
        return vector

    def note_used(self, records: Iterable[PendingRecord]) -> None:
        """Drop the front of the inbox up to `records`: the log has it now."""
        self.note_silent(records)
        for _ in range(self.silent):
            self._waiting.popleft()
        self.silent = 0

    def settle(self, vector: Mapping[str, Position]) -> None:
        """Drop the records that the log has used after a fold; the rest is undecided again."""
        self._waiting = _unused(self._waiting, vector)
        self._held = _unused(self._held, vector)
        self.silent = 0
        records = (*self._waiting, *self._held)
        self._inputs = sum(len(record.inputs) for record in records)
        self._bytes = sum(record.size for record in records)
        for key, position in vector.items():
            channel = self._channels.get(key)
            if channel is not None and channel.next < next_of(position):
                channel.move_to(position)
        self._release_due()

    def _release_due(self) -> None:
        """Release, in the order of arrival, the records for which `access` is read far enough."""
        access = self._access
        while self._held and (access is None or self._held[0].access_next <= access.next):
            self._waiting.append(self._held.popleft())
        self._update_room()

    def _update_room(self) -> None:
        """Open or close the gates: while a record is held back, only `access` may enter."""
        is_full = self._inputs >= LIMIT_INPUTS or self._bytes >= LIMIT_BYTES
        _switch(self._room_for_access, self._closed or not is_full or self.is_holding)
        _switch(self._room, self._closed or not (is_full or self.is_holding))


def _unused(
    records: Iterable[PendingRecord], vector: Mapping[str, Position]
) -> deque[PendingRecord]:
    return deque(r for r in records if r.offset >= next_of(vector.get(r.key, 0)))


def _switch(event: asyncio.Event, on: bool) -> None:
    if on:
        event.set()
    else:
        event.clear()
