"""Readers without a consumer group: they keep their own positions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping

from shared.bus.logs.log import Entry, Feed, Log
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor, Reader
from shared.ledger.record import decode

WAIT_S = 1.0
MAX_RECORDS = 1_000


class LedgerTail:
    """Reads accepted records of some ledgers, each partition from its cursor.

    Call `start` once; then `poll`, or iterate, which yields batches, and an empty one when
    `WAIT_S` passed without a record, so that a caller can do other work in between.
    """

    def __init__(
        self,
        log: Log,
        ledgers: Mapping[str, Iterable[int]],
        cursors: Mapping[TP, Cursor] | None = None,
    ) -> None:
        self._log = log
        known = cursors or {}
        self._readers = {
            tp: Reader(tp.topic, tp.partition, known.get(tp))
            for topic, partitions in ledgers.items()
            for tp in (TP(topic, partition) for partition in partitions)
        }
        self._anchors = {tp: r.cursor for tp, r in self._readers.items() if r.cursor.offset >= 0}
        self._ends: dict[TP, int] = {}
        self._feed: Feed | None = None

    async def start(self) -> None:
        """Open the feed; raises TailLost for a log that ends before its cursor."""
        await self._log.start()
        for tp, reader in self._readers.items():
            self._ends[tp] = await self._log.end(tp)
            if self._ends[tp] < reader.cursor.next:
                raise TailLost(f"{tp.key} ends before {reader.cursor.next}: tail lost")
        starts = {tp: max(r.cursor.offset, 0) for tp, r in self._readers.items()}
        self._feed = await self._log.feed(starts)

    async def stop(self) -> None:
        if self._feed is not None:
            feed, self._feed = self._feed, None
            await feed.close()
        await self._log.stop()

    async def behind(self) -> dict[TP, int]:
        """Return how many records of each log were not returned yet; empty before `start`."""
        if self._feed is None:
            return {}
        return {
            tp: max(0, await self._log.end(tp) - reader.cursor.next)
            for tp, reader in self._readers.items()
        }

    @property
    def caught_up(self) -> bool:
        """Return whether everything that was there at `start` has been returned."""
        return all(self._readers[tp].cursor.next >= end for tp, end in self._ends.items())

    def cursor(self, topic: str, partition: int) -> Cursor:
        """Return the cursor; store it together with the effects of the records returned so far."""
        return self._readers[TP(topic, partition)].cursor

    @property
    def ignored(self) -> int:
        return sum(reader.ignored for reader in self._readers.values())

    async def end(self, topic: str, partition: int) -> int:
        return await self._log.end(TP(topic, partition))

    async def poll(self, wait_s: float = WAIT_S, max_records: int = MAX_RECORDS) -> list[Accepted]:
        """Return the next accepted records, in order within each partition."""
        if self._feed is None:
            raise RuntimeError("the tail is not started")
        batch: list[Accepted] = []
        for tp, entries in (await self._feed.poll(wait_s, max_records)).items():
            for entry in entries:
                accepted = self._accept(tp, entry)
                if accepted is not None:
                    batch.append(accepted)
        return batch

    async def __aiter__(self) -> AsyncIterator[list[Accepted]]:
        while True:
            yield await self.poll()

    def _accept(self, tp: TP, entry: Entry) -> Accepted | None:
        reader = self._readers[tp]
        anchor = self._anchors.get(tp)
        if anchor is not None and entry.offset == anchor.offset:
            record = decode(entry.value)
            if record is None or record.id != anchor.id:
                raise TailLost(f"{tp.key} has another record at {entry.offset} than before")
            del self._anchors[tp]
        if entry.offset < reader.cursor.next:
            return None
        return reader.offer(entry.offset, entry.value)


class TopicTail:
    """Reads plain topics, from given offsets, from the oldest record, or from the end.

    `lossy` is for topics with retention: deleted records are skipped. Without it a gap raises.
    """

    def __init__(self, log: Log, *, lossy: bool = False) -> None:
        self._log = log
        self._lossy = lossy
        self._feed: Feed | None = None

    async def start(self, starts: Mapping[TP, int]) -> None:
        await self._log.start()
        self._feed = await self._log.feed(starts, lossy=self._lossy)

    async def start_at_end(self, tps: Iterable[TP]) -> None:
        """Start behind the newest record; the embedded broker may return a few older ones."""
        await self._log.start()
        starts = {tp: await self._log.end(tp) for tp in tps}
        self._feed = await self._log.feed(starts, lossy=self._lossy)

    async def start_at_begin(self, tps: Iterable[TP]) -> None:
        await self._log.start()
        starts = {tp: await self._log.begin(tp) for tp in tps}
        self._feed = await self._log.feed(starts, lossy=self._lossy)

    async def poll(
        self, wait_s: float = WAIT_S, max_records: int = MAX_RECORDS
    ) -> dict[TP, list[Entry]]:
        if self._feed is None:
            raise RuntimeError("the tail is not started")
        return await self._feed.poll(wait_s, max_records)

    async def seek(self, tp: TP, offset: int) -> None:
        if self._feed is None:
            raise RuntimeError("the tail is not started")
        await self._feed.seek(tp, offset)

    async def stop(self) -> None:
        if self._feed is not None:
            await self._feed.close()
        await self._log.stop()
