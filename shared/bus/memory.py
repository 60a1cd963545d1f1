"""An in-memory twin of the broker, with the accidents of a real one on demand."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Literal

from shared.bus.errors import OutcomeUnknown, TailLost
from shared.bus.log import TP, Entry, Feed, Headers

Accident = Literal["none", "lost_request", "lost_ack", "late", "duplicate", "wrong_offset"]
"""What becomes of one append: `late` fails, and lands with the next append of anybody."""


class MemoryBroker:
    """Partitions as lists; one per test, shared by its clients."""

    def __init__(self) -> None:
        self._partitions: dict[TP, list[Entry]] = defaultdict(list)
        self._late: list[tuple[TP, bytes, bytes | None, Headers]] = []
        self._moved = asyncio.Event()

    def append(self, tp: TP, value: bytes, key: bytes | None = None, headers: Headers = ()) -> int:
        late, self._late = self._late, []
        for delayed in late:
            self._put(*delayed)
        return self._put(tp, value, key, headers)

    def postpone(self, tp: TP, value: bytes, key: bytes | None, headers: Headers) -> None:
        self._late.append((tp, value, key, headers))

    def entries(self, tp: TP) -> list[Entry]:
        return self._partitions[tp]

    def cut_tail(self, tp: TP, end: int) -> None:
        """Forget what was acknowledged, as a broker does that lost its disk's last writes."""
        del self._partitions[tp][end:]

    async def moved(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._moved.wait()
        except TimeoutError:
            return

    def _put(self, tp: TP, value: bytes, key: bytes | None, headers: Headers) -> int:
        partition = self._partitions[tp]
        partition.append(Entry(len(partition), key, value, tuple(headers)))
        self._moved.set()
        self._moved = asyncio.Event()
        return len(partition) - 1


class MemoryFeed:
    def __init__(self, broker: MemoryBroker, start: Mapping[TP, int], lossy: bool) -> None:
        self._broker = broker
        self._next = dict(start)
        self._lossy = lossy

    async def poll(self, wait_s: float, max_records: int = 500) -> dict[TP, list[Entry]]:
        found = self._take(max_records)
        if not found and wait_s > 0:
            await self._broker.moved(wait_s)
            found = self._take(max_records)
        await asyncio.sleep(0)
        return found

    def _take(self, max_records: int) -> dict[TP, list[Entry]]:
        found: dict[TP, list[Entry]] = {}
        for tp, position in self._next.items():
            there = self._broker.entries(tp)
            if position > len(there) and not self._lossy:
                raise TailLost(f"{tp.key} has no offset {position}")
            taken = there[position : position + max_records]
            if taken:
                found[tp] = taken
                self._next[tp] = taken[-1].offset + 1
                max_records -= len(taken)
        return found

    async def seek(self, tp: TP, offset: int) -> None:
        self._next[tp] = offset

    async def close(self) -> None:
        self._next.clear()


class MemoryLog:
    """A client of the twin; `accidents` are used up in order, `before_append` may race it."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker
        self.accidents: deque[Accident] = deque()
        self.before_append: Callable[[TP], None] | None = None

    async def start(self) -> None:
        return None

    async def stop(self) -> None:
        return None

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        await asyncio.sleep(0)
        if self.before_append is not None:
            self.before_append(tp)
        accident = self.accidents.popleft() if self.accidents else "none"
        match accident:
            case "lost_request":
                raise OutcomeUnknown(f"{tp.key}: the request is lost")
            case "late":
                self.broker.postpone(tp, value, key, headers)
                raise OutcomeUnknown(f"{tp.key}: the request is late")
        offset = self.broker.append(tp, value, key, headers)
        match accident:
            case "lost_ack":
                raise OutcomeUnknown(f"{tp.key}: the answer is lost")
            case "duplicate":
                self.broker.append(tp, value, key, headers)
            case "wrong_offset":
                return -1
        return offset

    async def feed(self, start: Mapping[TP, int], *, lossy: bool = False) -> Feed:
        return MemoryFeed(self.broker, start, lossy)

    async def begin(self, tp: TP) -> int:
        return 0

    async def end(self, tp: TP) -> int:
        return len(self.broker.entries(tp))
