"""The inputs of one lane that are read and not yet in an accepted record."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from shared.bus.decider import Input
from shared.bus.inputs import InputDecoder
from shared.bus.log import TP
from shared.bus.reader import Cursor, Reader
from shared.bus.record import Position, next_of
from shared.contracts.topics import LEDGERS

Fed = Literal["ok", "old", "gap"]

LIMIT_INPUTS = 5_000
LIMIT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Waiting:
    """One record of an input; `position` is that input's entry in the vector once it is used."""

    key: str
    offset: int
    position: Position
    inputs: tuple[Input, ...]
    size: int


class Channel:
    """How far one input has been read, ahead of what is decided."""

    def __init__(self, tp: TP, decoder: InputDecoder) -> None:
        self.tp = tp
        self._decoder = decoder
        self._reader = Reader(tp.topic, tp.partition) if tp.topic in LEDGERS else None
        self.next = 0

    def move_to(self, position: Position) -> None:
        """Go on behind what a rival has already used."""
        self.next = next_of(position)
        if self._reader is not None and not isinstance(position, int):
            self._reader.cursor = Cursor(*position)

    @property
    def ignored(self) -> int:
        """Records of it that the reader rule ignored."""
        return self._reader.ignored if self._reader is not None else 0

    def take(self, offset: int, value: bytes | None) -> Waiting:
        self.next = offset + 1
        size = len(value or b"")
        if self._reader is None:
            found = self._decoder.of_plain(self.tp, offset, value)
            return Waiting(self.tp.key, offset, self.next, tuple(found), size)
        accepted = self._reader.offer(offset, value)
        found = self._decoder.of_ledger(accepted) if accepted else []
        return Waiting(self.tp.key, offset, self._reader.position, tuple(found), size)


class Inbox:
    """Begins exactly at the vector of the last accepted record; bounded, so it pushes back.

    Inputs that led to nothing stay in front, counted as silent, until a record carries them.
    """

    def __init__(self, inputs: Iterable[TP], decoder: InputDecoder) -> None:
        self._channels = {tp.key: Channel(tp, decoder) for tp in inputs}
        self._waiting: deque[Waiting] = deque()
        self._inputs = 0
        self._bytes = 0
        self.silent = 0
        self.room = asyncio.Event()
        self.room.set()

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

    def want(self, key: str) -> int:
        return self._channels[key].next

    def wants(self) -> dict[TP, int]:
        return {channel.tp: channel.next for channel in self._channels.values()}

    def put(self, tp: TP, offset: int, value: bytes | None) -> Fed:
        channel = self._channels[tp.key]
        if offset != channel.next:
            return "old" if offset < channel.next else "gap"
        waiting = channel.take(offset, value)
        self._waiting.append(waiting)
        self._inputs += len(waiting.inputs)
        self._bytes += waiting.size
        self._open()
        return "ok"

    def batch(self, max_inputs: int, max_bytes: int) -> list[Waiting]:
        """The oldest undecided records; at least one when there is any."""
        drawn: list[Waiting] = []
        inputs = size = 0
        for waiting in islice(self._waiting, self.silent, None):
            inputs += len(waiting.inputs)
            size += waiting.size
            if drawn and (inputs > max_inputs or size > max_bytes or len(drawn) >= 1_000):
                break
            drawn.append(waiting)
        return drawn

    def fell_silent(self, drawn: Iterable[Waiting]) -> None:
        """They were decided and led to nothing; they need no record of their own."""
        for waiting in drawn:
            self.silent += 1
            self._inputs -= len(waiting.inputs)
            self._bytes -= waiting.size
        self._open()

    def vector(self, base: Mapping[str, Position], drawn: Iterable[Waiting]) -> dict[str, Position]:
        """`in` of a record that uses the silent ones and `drawn`."""
        after = dict(base)
        for waiting in islice(self._waiting, self.silent):
            after[waiting.key] = waiting.position
        for waiting in drawn:
            after[waiting.key] = waiting.position
        return after

    def used(self, drawn: Iterable[Waiting]) -> None:
        """Our record was accepted: what stands in front is in the log now."""
        self.fell_silent(drawn)
        for _ in range(self.silent):
            self._waiting.popleft()
        self.silent = 0

    def settle(self, vector: Mapping[str, Position]) -> None:
        """After a fold: drop what the log has, and be ready to decide the rest again."""
        left = [w for w in self._waiting if w.offset >= next_of(vector.get(w.key, 0))]
        self._waiting = deque(left)
        self.silent = 0
        self._inputs = sum(len(w.inputs) for w in left)
        self._bytes = sum(w.size for w in left)
        for key, position in vector.items():
            channel = self._channels.get(key)
            if channel is not None and channel.next < next_of(position):
                channel.move_to(position)
        self._open()

    def _open(self) -> None:
        if self._inputs < LIMIT_INPUTS and self._bytes < LIMIT_BYTES:
            self.room.set()
        else:
            self.room.clear()
