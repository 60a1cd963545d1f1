"""Copies the settled records of topics into the archive; any number of archivers may run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from shared.bus.archive.archive import Archive
from shared.bus.archive.chain import Chain
from shared.bus.archive.cut import SEGMENT_BYTES, Cut
from shared.bus.archive.walk import Walk, identity
from shared.bus.logs.log import Entry, Feed, Log
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP

POLL_S = 1.0
POLL_RECORDS = 2_000
SILENT_POLLS = 30
"""Polls without a record after which the topic counts as shorter than its end says."""


@dataclass(frozen=True, slots=True)
class ArchiverOptions:
    """The name of the writer, and the size at which an object is closed."""

    writer: str
    segment_bytes: int = SEGMENT_BYTES


class Archiver:
    """Extends the chain of one partition at a time; the store is the arbiter between archivers."""

    def __init__(
        self, log: Log, archive: Archive, options: ArchiverOptions, now_ms: Callable[[], int]
    ) -> None:
        self._log = log
        self._archive = archive
        self._options = options
        self._now_ms = now_ms

    async def archive(self, tp: TP, end: int) -> int:
        """Archive the records up to `end`; return how many entries this archiver has made.

        The topic must still have the last archived record, or begin right behind it: else it is
        another topic, or records are gone, and TailLost is raised before anything is written. The
        same holds for a topic without its beginning of which nothing is archived.
        """
        chain = await asyncio.to_thread(self._archive.refresh, tp)
        start = await self._start(chain)
        entries = 0
        while chain.next < end:
            length = len(chain)
            entries += await self._extend(chain, start, end)
            if len(chain) == length:
                raise TailLost(f"{tp.key}: entry {length} was made and is not in the chain")
            start = await self._start(chain)
        return entries

    async def _extend(self, chain: Chain, start: int, end: int) -> int:
        """Make entries until one is another's, or the end is reached; return how many."""
        feed = await self._log.feed({chain.tp: start})
        entries = 0
        try:
            source = _Source(feed, chain.tp, start, end)
            while chain.next < end:
                # Entries of other archivers may follow that of this one.
                while source.at < chain.next:
                    check_anchor(chain, await source.next())
                cut = Cut(Walk(chain.tp, chain.cursor))
                while source.at < end and cut.raw_bytes < self._options.segment_bytes:
                    cut.add(await source.next())
                if not await asyncio.to_thread(self._put, chain, cut):
                    break
                entries += 1
        finally:
            await feed.close()
        return entries

    def _put(self, chain: Chain, cut: Cut) -> bool:
        entry, body = cut.close(chain.end, self._options.writer, self._now_ms())
        won = self._archive.put(entry, body)
        self._archive.refresh(chain.tp)
        return won

    async def _start(self, chain: Chain) -> int:
        """Return where to read: at the last archived record that counts, if the topic has it."""
        tp = chain.tp
        begin, end = await self._log.begin(tp), await self._log.end(tp)
        if begin > chain.next:
            raise TailLost(
                f"{tp.key}: the archive ends at {chain.next}, and the topic begins at {begin}:"
                " records between them are gone"
            )
        if end < chain.next:
            raise TailLost(
                f"{tp.key}: the archive ends at {chain.next}, and the topic at {end}: it is another"
                " topic, or its tail is lost"
            )
        return chain.cursor.offset if begin <= chain.cursor.offset else chain.next


class _Source:
    """The records of one partition, one by one."""

    def __init__(self, feed: Feed, tp: TP, start: int, end: int) -> None:
        self._feed = feed
        self._tp = tp
        self._end = end
        self._ready: list[Entry] = []
        self.at = start
        """The next offset."""

    async def next(self) -> Entry:
        silent = 0
        while not self._ready:
            polled = await self._feed.poll(POLL_S, POLL_RECORDS)
            self._ready = polled.get(self._tp, [])[::-1]
            silent += 1
            if silent > SILENT_POLLS:
                raise TailLost(f"{self._tp.key}: nothing came at {self.at}; {self._end} is its end")
        entry = self._ready.pop()
        self.at = entry.offset + 1
        return entry


def check_anchor(chain: Chain, entry: Entry) -> None:
    """Raise TailLost if the topic has another record where the archive has its last one."""
    if entry.offset == chain.cursor.offset and identity(chain.tp, entry) != chain.cursor.id:
        raise TailLost(
            f"{chain.tp.key}: has another record at {entry.offset} than the archive: it is another"
            " topic, or an older copy of it"
        )
