"""Watches whether the broker removes records once they are older than their topic keeps them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from shared.bus.clock import now_ms
from shared.bus.logs.log import Log, fetch
from shared.ledger.partition import TP

EVERY_S = 600.0
WAIT_S = 5.0
DAY_MS = 86_400_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kept:
    """Time that a topic keeps a record, ms; `segment_ms` more, as Kafka removes whole segments."""

    topic: str
    partitions: int
    retention_ms: int
    segment_ms: int = 7 * DAY_MS

    @property
    def tps(self) -> Iterator[TP]:
        for partition in range(self.partitions):
            yield TP(self.topic, partition)


class RetentionWatch:
    """Reads the oldest record of each partition of a topic from time to time."""

    def __init__(self, open_log: Callable[[], Log], kept: Kept) -> None:
        self.kept = kept
        self._open_log = open_log
        self._behind_s = 0.0

    def behind_s(self) -> float:
        """Return by how much the oldest record is older than it should be, s; 0: it is not."""
        return self._behind_s

    async def run(self) -> None:
        """Look until cancelled; an error is logged, and the figure stays as it was."""
        while True:
            bus = self._open_log()
            try:
                await bus.start()
                await self.look(bus, now_ms())
            except Exception as error:
                log.warning("retention not read: %r", error, extra={"topic": self.kept.topic})
            finally:
                await bus.stop()
            await asyncio.sleep(EVERY_S)

    async def look(self, bus: Log, now: int) -> None:
        """Compare the oldest records with what the topic keeps; `now` in ms."""
        ages = [now - at for tp in self.kept.tps if (at := await oldest_ms(bus, tp)) is not None]
        allowed = self.kept.retention_ms + self.kept.segment_ms
        self._behind_s = max([0, *(age - allowed for age in ages)]) / 1000


async def oldest_ms(bus: Log, tp: TP) -> int | None:
    """Return when the oldest record was appended, ms; None without one, or without its time."""
    begin = await bus.begin(tp)
    if begin >= await bus.end(tp):
        return None
    entries = await fetch(bus, tp, begin, 1, WAIT_S)
    return entries[0].timestamp if entries and entries[0].timestamp > 0 else None
