"""The inputs of one lane that are read and not yet in an accepted record."""

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
from shared.ledger.reader import Cursor, Reader
from shared.ledger.record import Position, next_of

Fed = Literal["ok", "old", "gap"]

ACCESS = TP("access", 0)
ACCESS_KEY = ACCESS.key

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
    access_next: int
    """How far whoever wrote it had read `access`."""


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
            seen = max((each.access_next for each in found), default=0)
            return Waiting(self.tp.key, offset, self.next, tuple(found), size, seen)
        accepted = self._reader.offer(offset, value)
        found = self._decoder.of_ledger(accepted) if accepted else []
        seen = next_of(accepted.record.inputs.get(ACCESS_KEY, 0)) if accepted else 0
        return Waiting(self.tp.key, offset, self._reader.position, tuple(found), size, seen)


class Inbox:
    """Begins exactly at the vector of the last accepted record; bounded, so it pushes back.

    Inputs that led to nothing stay in front, counted as silent, until a record carries them.
    One whose writer had read more of `access` than this lane is held back, and what comes after it
    too: who was told that a tenant is let in may send its job at once.
    """

    def __init__(self, inputs: Iterable[TP], decoder: InputDecoder) -> None:
        self._channels = {tp.key: Channel(tp, decoder) for tp in inputs}
        self._access = self._channels.get(ACCESS_KEY)
        self._waiting: deque[Waiting] = deque()
        self._held: deque[Waiting] = deque()
        self._inputs = 0
        self._bytes = 0
        self.silent = 0
        self._closed = False
        self._room = asyncio.Event()
        self._room_for_access = asyncio.Event()
        self._open()

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
    def holds(self) -> bool:
        """Something waits for what `access` says."""
        return bool(self._held)

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    async def room(self, tp: TP) -> None:
        """Returns once it takes a record of that input, or is closed."""
        await (self._room_for_access if tp == ACCESS else self._room).wait()

    def close(self) -> None:
        """Nobody need wait any more."""
        self._closed = True
        self._open()

    def want(self, key: str) -> int:
        return self._channels[key].next

    def wants(self) -> dict[TP, int]:
        return {channel.tp: channel.next for channel in self._channels.values()}

    def put(self, tp: TP, offset: int, value: bytes | None) -> Fed:
        channel = self._channels[tp.key]
        if offset != channel.next:
            return "old" if offset < channel.next else "gap"
        waiting = channel.take(offset, value)
        self._inputs += len(waiting.inputs)
        self._bytes += waiting.size
        if tp == ACCESS:
            self._waiting.append(waiting)
        else:
            self._held.append(waiting)
        self._go_on()
        return "ok"

    def let_go(self) -> None:
        """Hold nothing back: `access` ends before it, as after a restore of an older copy."""
        self._waiting.extend(self._held)
        self._held.clear()
        self._open()

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

        def left(waiting: Iterable[Waiting]) -> deque[Waiting]:
            return deque(w for w in waiting if w.offset >= next_of(vector.get(w.key, 0)))

        self._waiting, self._held = left(self._waiting), left(self._held)
        self.silent = 0
        both = (*self._waiting, *self._held)
        self._inputs = sum(len(w.inputs) for w in both)
        self._bytes = sum(w.size for w in both)
        for key, position in vector.items():
            channel = self._channels.get(key)
            if channel is not None and channel.next < next_of(position):
                channel.move_to(position)
        self._go_on()

    def _go_on(self) -> None:
        """What `access` has been read far enough for may be decided, in the order of arrival."""
        access = self._access
        while self._held and (access is None or self._held[0].access_next <= access.next):
            self._waiting.append(self._held.popleft())
        self._open()

    def _open(self) -> None:
        """What is held back must not keep out what it waits for; others wait behind it."""
        full = self._inputs >= LIMIT_INPUTS or self._bytes >= LIMIT_BYTES
        _turn(self._room_for_access, self._closed or not full or self.holds)
        _turn(self._room, self._closed or not (full or self.holds))


def _turn(event: asyncio.Event, on: bool) -> None:
    if on:
        event.set()
    else:
        event.clear()
