"""An in-memory twin of the broker."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from shared.bus.logs.log import Entry, Feed, Headers
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP


class MemoryBroker:
    """Partitions as lists; one per test, shared by its clients."""

    def __init__(self) -> None:
        self._partitions: dict[TP, list[Entry]] = defaultdict(list)
        self._begins: dict[TP, int] = {}
        self._moved = asyncio.Event()

    def append(
        self,
        tp: TP,
        value: bytes,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int = 0,
    ) -> int:
        partition = self._partitions[tp]
        partition.append(Entry(len(partition), key, value, tuple(headers), timestamp))
        self._moved.set()
        self._moved = asyncio.Event()
        return len(partition) - 1

    def entries(self, tp: TP) -> list[Entry]:
        return self._partitions[tp]

    def trim(self, tp: TP, offset: int) -> None:
        """Let the records before `offset` be gone, as by retention."""
        self._begins[tp] = offset

    def begin(self, tp: TP) -> int:
        return self._begins.get(tp, 0)

    def forget(self, tp: TP) -> None:
        """Free the memory of a partition that was copied elsewhere."""
        self._partitions[tp] = []

    async def moved(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._moved.wait()
        except TimeoutError:
            return


class MemoryFeed:
    def __init__(self, broker: MemoryBroker, start: Mapping[TP, int], lossy: bool) -> None:
        self._broker = broker
        self._next = dict(start)
        self._lossy = lossy

    async def poll(self, wait_s: float, max_records: int = 500) -> dict[TP, list[Entry]]:
        records = self._take(max_records)
        if not records and wait_s > 0:
            await self._broker.moved(wait_s)
            records = self._take(max_records)
        await asyncio.sleep(0)
        return records

    def _take(self, max_records: int) -> dict[TP, list[Entry]]:
        records: dict[TP, list[Entry]] = {}
        for tp, position in self._next.items():
            entries, begin = self._broker.entries(tp), self._broker.begin(tp)
            if position < begin:
                if not self._lossy:
                    raise TailLost(f"{tp.key} has no offset {position}")
                position = begin
            if position > len(entries) and not self._lossy:
                raise TailLost(f"{tp.key} has no offset {position}")
            taken = entries[position : position + max_records]
            if taken:
                records[tp] = taken
                self._next[tp] = taken[-1].offset + 1
                max_records -= len(taken)
        return records

    async def seek(self, tp: TP, offset: int) -> None:
        self._next[tp] = offset

    async def close(self) -> None:
        self._next.clear()


class MemoryLog:
    """A client of the twin."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker

    async def start(self) -> None:
        return None

    async def stop(self) -> None:
        return None

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        await asyncio.sleep(0)
        return self.broker.append(tp, value, key, headers)

    async def feed(self, start: Mapping[TP, int], *, lossy: bool = False) -> Feed:
        return MemoryFeed(self.broker, start, lossy)

    async def begin(self, tp: TP) -> int:
        return self.broker.begin(tp)

    async def end(self, tp: TP) -> int:
        return len(self.broker.entries(tp))
