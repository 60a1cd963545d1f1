"""The task that keeps the archive of an installation up to date."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from shared.bus.archive.archive import Archive
from shared.bus.archive.archiver import Archiver, ArchiverOptions
from shared.bus.archive.store import ObjectStore
from shared.bus.clock import now_ms
from shared.bus.logs.log import Log
from shared.contracts.topics import ARCHIVED, TOPICS
from shared.ledger.errors import ProtocolViolation
from shared.ledger.partition import TP

RUNBOOK = "docs/operations/archive.md#archiveunreachable"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArchivingPace:
    """The pause between looks at the ends, and the time after which an entry is due, s."""

    look_every_s: float = 60.0
    entry_every_s: float = 6 * 3600.0


class Archiving:
    """Archives what was there at the look before, so that a tail that Kafka still may lose after
    the crash of a broker is not archived.

    An error is logged and repeated at the next look: no reader of the topics depends on it.
    """

    def __init__(
        self,
        open_log: Callable[[], Log],
        store: ObjectStore,
        partitions: int,
        options: ArchiverOptions,
        pace: ArchivingPace,
    ) -> None:
        self._open_log = open_log
        self._store = store
        self._archive = Archive(store)
        self._tps = archived_partitions(partitions)
        self._options = options
        self._pace = pace
        self._ends: dict[TP, int] = {}
        """The ends at the last look."""
        self._done_s = dict.fromkeys(self._tps, time.monotonic())
        """When each partition was last archived as far as was due."""
        self._reached_s = time.monotonic()
        """When the archive could last be written."""
        self._is_away = False
        self._free_ratio: float | None = None
        self._errors: dict[TP, str] = {}

    def behind_s(self) -> float:
        """Return the seconds since all was archived that was due."""
        return time.monotonic() - min(self._done_s.values())

    def unreachable_s(self) -> float:
        """Return the seconds since the archive could be written, as of the last look; 0: it can."""
        return time.monotonic() - self._reached_s if self._is_away else 0.0

    def free_ratio(self) -> float:
        """Return the free share of the archive's disk at the last look, NaN where none is known."""
        return math.nan if self._free_ratio is None else self._free_ratio

    async def run(self) -> None:
        """Archive until cancelled."""
        while True:
            bus = self._open_log()
            try:
                await bus.start()
                while True:
                    await self.look(bus)
                    await asyncio.sleep(self._pace.look_every_s)
            except Exception as error:
                log.warning("archiving restarts", extra={"reason": repr(error)[:200]})
            finally:
                await bus.stop()
            await asyncio.sleep(self._pace.look_every_s)

    async def look(self, bus: Log) -> None:
        """Archive what is due of each partition."""
        await self._check_store()
        archiver = Archiver(bus, self._archive, self._options, now_ms)
        for tp in self._tps:
            try:
                await self._archive_due(archiver, tp, self._ends.get(tp, 0))
            except (ProtocolViolation, OSError) as error:
                self._note_error(tp, error)
            else:
                self._done_s[tp] = time.monotonic()
                self._errors.pop(tp, None)
            self._ends[tp] = await bus.end(tp)

    async def _check_store(self) -> None:
        """Note whether the archive can be written, also while nothing is due."""
        try:
            await asyncio.to_thread(self._store.check_writable)
            self._free_ratio = await asyncio.to_thread(self._store.free_ratio)
        except OSError as error:
            if not self._is_away:
                log.error("the archive cannot be written: %s; see %s", error, RUNBOOK)
            self._is_away = True
        else:
            self._reached_s, self._is_away = time.monotonic(), False

    async def _archive_due(self, archiver: Archiver, tp: TP, end: int) -> None:
        chain = await asyncio.to_thread(self._archive.refresh, tp)
        # Of a clock that was ahead when an entry was made, the age is negative for that long.
        age_s = abs(now_ms() - chain.end.made_ms) / 1000
        if chain.next < end and age_s >= self._pace.entry_every_s:
            await archiver.archive(tp, end)

    def _note_error(self, tp: TP, error: Exception) -> None:
        """Log an error once, not at each look."""
        text = str(error)
        if self._errors.get(tp) != text:
            see = getattr(error, "runbook", "")
            log.error("%s is not archived: %s; see %s", tp.key, text, see)
        self._errors[tp] = text


def archived_partitions(partitions: int) -> list[TP]:
    """Return every partition that an archive takes over."""
    return [
        TP(topic, lane)
        for topic in ARCHIVED
        for lane in range(1 if TOPICS[topic].single_partition else partitions)
    ]
