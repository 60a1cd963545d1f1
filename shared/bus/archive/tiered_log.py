"""A log on two tiers: the archive has its beginning, the topic its end and all that is new."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from shared.bus.archive.archive import Archive
from shared.bus.archive.chain import Chain
from shared.bus.archive.store import ObjectStore
from shared.bus.archive.tiered_feed import TieredFeed
from shared.bus.logs.log import Entry, Feed, Headers, Log
from shared.contracts.topics import ARCHIVED
from shared.ledger.partition import TP


class TieredLog:
    """Below its end the archive wins, whatever the topic says to begin with.

    The topic's begin may go back after a crash of the broker, and a restored topic has fillers
    there: read as records of a ledger they would be an empty one. A read that begins behind record
    0, and of which the topic has all, goes on without an archive that does not answer: the reader
    knows the record there.
    """

    def __init__(self, topics: Log, store: ObjectStore) -> None:
        self.topics = topics
        self._archive = Archive(store)
        self._reading = asyncio.Lock()

    async def start(self) -> None:
        await self.topics.start()

    async def stop(self) -> None:
        await self.topics.stop()

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        return await self.topics.append(tp, value, key=key, headers=headers)

    async def feed(self, start: Mapping[TP, int], *, lossy: bool = False) -> Feed:
        feed = TieredFeed(self.topics, self, start, lossy=lossy)
        try:
            await feed.open()
        except BaseException:
            await feed.close()
            raise
        return feed

    async def begin(self, tp: TP) -> int:
        begin = await self.topics.begin(tp)
        if not begin or tp.topic not in ARCHIVED:
            return begin
        return 0 if await self.archived_end(tp) else begin

    async def end(self, tp: TP) -> int:
        return await self.topics.end(tp)

    async def archived_end(self, tp: TP) -> int:
        """Return the first offset that is not archived now."""
        async with self._reading:
            return await asyncio.to_thread(self._archive.end, tp)

    async def chain(self, tp: TP) -> Chain:
        """Return the chain as it is now."""
        async with self._reading:
            return await asyncio.to_thread(self._archive.refresh, tp)

    def records(self, chain: Chain, offset: int) -> Iterator[Entry]:
        """Yield the archived records from `offset` on; blocks."""
        for entry in chain.since(offset):
            yield from self._archive.records(entry, offset)
