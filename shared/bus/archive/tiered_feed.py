"""A moving read of two tiers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Protocol

from shared.bus.archive.chain import Chain
from shared.bus.logs.log import Entry, Feed, Log
from shared.contracts.topics import ARCHIVED
from shared.ledger.errors import ArchiveUnreachable, TailLost
from shared.ledger.partition import TP


class ArchiveReader(Protocol):
    """The archived tier of a log."""

    async def archived_end(self, tp: TP) -> int: ...

    async def chain(self, tp: TP) -> Chain: ...

    def records(self, chain: Chain, offset: int) -> Iterator[Entry]: ...


class TieredFeed:
    """Reads each partition from the archive up to its end, then from its topic.

    A topic that no longer has what is due was trimmed: the archive has it, or it is lost.
    """

    def __init__(
        self, topics: Log, archive: ArchiveReader, start: Mapping[TP, int], *, lossy: bool
    ) -> None:
        self._topics = topics
        self._archive = archive
        self._lossy = lossy
        self._at = dict(start)
        self._archived: dict[TP, Iterator[Entry]] = {}
        """Partitions that are read from the archive now."""
        self._feed: Feed | None = None
        """The feed of the others; None for none."""

    async def open(self) -> None:
        for tp, offset in self._at.items():
            await self._place(tp, offset)
        await self._reopen()

    async def poll(self, wait_s: float, max_records: int = 500) -> dict[TP, list[Entry]]:
        polled: dict[TP, list[Entry]] = {}
        for tp in list(self._archived):
            if batch := await self._take(tp, max_records):
                polled[tp] = batch
                self._at[tp] = batch[-1].offset + 1
        for tp, batch in (await self._poll_topics(0.0 if polled else wait_s, max_records)).items():
            polled[tp] = batch
            self._at[tp] = batch[-1].offset + 1
        return polled

    async def seek(self, tp: TP, offset: int) -> None:
        was_archived = self._archived.pop(tp, None) is not None
        self._at[tp] = offset
        await self._place(tp, offset)
        if was_archived or tp in self._archived or self._feed is None:
            await self._reopen()
        else:
            await self._feed.seek(tp, offset)

    async def close(self) -> None:
        self._archived.clear()
        feed, self._feed = self._feed, None
        if feed is not None:
            await feed.close()

    async def _place(self, tp: TP, offset: int) -> None:
        """Decide where `offset` is read. Raises ArchiveUnreachable if only the archive knows."""
        if tp.topic not in ARCHIVED:
            return
        try:
            archived = await self._archive.archived_end(tp)
        except ArchiveUnreachable:
            if offset <= 0 or await self._topics.begin(tp) > offset:
                raise
            return
        if (end := await self._topics.end(tp)) < archived:
            raise TailLost(
                f"{tp.key} ends at {end}, and its archive at {archived}: tail lost, or the"
                " archive is newer than the log that was restored"
            )
        if offset < archived:
            chain = await self._archive.chain(tp)
            self._archived[tp] = self._archive.records(chain, offset)

    async def _take(self, tp: TP, max_records: int) -> list[Entry]:
        """Return the next archived records; none, with the partition placed anew, at their end."""
        rows = self._archived[tp]
        batch = await asyncio.to_thread(lambda: list(islice(rows, max_records)))
        if batch and batch[0].offset != self._at[tp]:
            raise TailLost(
                f"{tp.key}: the archive has {batch[0].offset}, and {self._at[tp]} is due"
            )
        if not batch:
            del self._archived[tp]
            await self._place(tp, self._at[tp])
            await self._reopen()
        return batch

    async def _poll_topics(self, wait_s: float, max_records: int) -> dict[TP, list[Entry]]:
        if self._feed is None:
            return {}
        try:
            return await self._feed.poll(wait_s, max_records)
        except TailLost as error:
            await self._go_to_archive(error)
            return {}

    async def _go_to_archive(self, error: TailLost) -> None:
        """Read from the archive what the topics have no more. Raises `error` if it has it not."""
        before = len(self._archived)
        for tp, offset in self._at.items():
            if tp not in self._archived:
                await self._place(tp, offset)
        if len(self._archived) == before:
            raise error
        await self._reopen()

    async def _reopen(self) -> None:
        """Read the partitions from their topics that are not read from the archive."""
        feed, self._feed = self._feed, None
        if feed is not None:
            await feed.close()
        starts = {tp: offset for tp, offset in self._at.items() if tp not in self._archived}
        for tp, offset in starts.items():
            if not self._lossy and (begin := await self._topics.begin(tp)) > offset:
                raise TailLost(
                    f"{tp.key} begins at {begin}, and {offset} is due: neither the archive nor the"
                    " topic has it"
                )
        if starts:
            self._feed = await self._topics.feed(starts, lossy=self._lossy)
