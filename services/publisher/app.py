"""Publishes the ledgers as public events, at least once; ids identify repeats."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable

from aiokafka.errors import KafkaError

from services.publisher.core.lane import Published, PublisherLane
from services.publisher.core.position import HEADER, encode
from services.publisher.core.quiet import is_quiet
from services.publisher.dead_letters import DeadLetters
from services.publisher.positions import read_last, read_positions
from services.publisher.settings import PublisherSettings
from services.publisher.shipper import OutgoingRecord, Shipper
from shared.bus.clock import now_ms
from shared.bus.failpoints import FAILPOINTS
from shared.bus.logs.log import Entry, Log
from shared.bus.logs.tail import LedgerTail
from shared.contracts.topics import LEDGERS, TOPICS, tenant_events
from shared.ledger.cloudevents import CONTENT_TYPE
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.telemetry.metrics import CaughtUp, Metrics

EVENTS = "events"
DEAD = "dead"
CONTENT = ("content-type", CONTENT_TYPE.encode())
RETRY_S = 1.0
MIN_REFRESH_S = 0.1
"""Minimum time between two listings of all topics."""
LOOK_EVERY_S = 3600.0
"""Time between two looks for lanes that had no event for long."""

log = logging.getLogger(__name__)


class Publisher:
    """Reads all ledgers and ships public events; `open_log` returns a new client per reader."""

    def __init__(
        self,
        settings: PublisherSettings,
        open_log: Callable[[], Log],
        open_shipper: Callable[[], Shipper],
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._open_log = open_log
        self._open_shipper = open_shipper
        self._metrics = metrics
        self._topics: dict[str, int] = {}
        self._topics_at = 0.0
        self._looked_at_s = time.monotonic()
        self._written_at: dict[int, int] = {}
        """When this process has last written to a lane of `events`, wall ms."""
        self.lanes: dict[int, PublisherLane] = {}
        self.published = 0
        self.ready = False
        self.caught_up = CaughtUp()

    async def run(self) -> None:
        """Publish until cancelled; after an unknown outcome resume from the published events.

        A broken ledger ends it.
        """
        while True:
            try:
                await self.session()
            except (OutcomeUnknown, KafkaError, OSError) as error:
                log.warning("publishing restarts", extra={"reason": str(error)[:200]})
            self.ready = False
            await asyncio.sleep(RETRY_S)

    async def session(self) -> None:
        bus, shipper = self._open_log(), self._open_shipper()
        dead = DeadLetters(bus)
        await bus.start()
        try:
            await shipper.start()
            await self._follow(bus, shipper, dead)
        finally:
            await dead.close()
            await shipper.stop()
            await bus.stop()

    async def _follow(self, bus: Log, shipper: Shipper, dead: DeadLetters) -> None:
        tail = await self._tail(bus)
        await tail.start()
        try:
            self.ready = True
            while True:
                await self._refresh(shipper)
                batch = await tail.poll(max_records=self._settings.max_records)
                await self._publish(batch, shipper, dead)
                if len(batch) < self._settings.max_records:
                    self.caught_up.note()
                    await self._repeat_quiet(bus, shipper)
                if 0 < len(batch) < self._settings.max_records:
                    await asyncio.sleep(self._settings.window_ms / 1000)
        finally:
            await tail.stop()

    async def _tail(self, bus: Log) -> LedgerTail:
        partitions = range(self._settings.partitions)
        positions_of = await read_positions(bus, EVENTS, partitions)
        self.lanes = {lane: PublisherLane(positions_of.get(lane, {})) for lane in partitions}
        cursors = {
            TP(ledger, lane): position.cursor
            for lane, positions in positions_of.items()
            for ledger, position in positions.items()
        }
        ledgers = {
            name: range(1) if TOPICS[name].single_partition else partitions for name in LEDGERS
        }
        return LedgerTail(self._open_log(), ledgers, cursors)

    async def _repeat_quiet(self, bus: Log, shipper: Shipper) -> None:
        """Publish the last event of each quiet lane again, with the present position of the lane.

        Retention would remove it, and a restart would begin at 0 and publish the whole lane again.
        """
        if time.monotonic() - self._looked_at_s < LOOK_EVERY_S:
            return
        self._looked_at_s = time.monotonic()
        now, retention_ms = now_ms(), TOPICS[EVENTS].retention_ms
        quiet = [
            lane
            for lane in self.lanes
            if is_quiet(self._written_at.get(lane, 0), now, retention_ms)
        ]
        for lane, entry in (await read_last(bus, EVENTS, quiet)).items():
            self._written_at[lane] = entry.timestamp
            if is_quiet(entry.timestamp, now, retention_ms):
                again = repeated(entry, encode(self.lanes[lane].positions))
                await shipper.ship({TP(EVENTS, lane): [again]})
                self._written_at[lane] = now

    async def _refresh(self, shipper: Shipper) -> None:
        if time.monotonic() - self._topics_at >= self._settings.refresh_s:
            await self._refresh_topics(shipper)

    async def _find_topics(self, topics: set[str], shipper: Shipper) -> None:
        """List the topics again if one is unknown: a tenant's topic exists before its first job, so
        that no event is left out. A tenant may have none."""
        if not topics <= self._topics.keys():
            await asyncio.sleep(max(0.0, self._topics_at + MIN_REFRESH_S - time.monotonic()))
            await self._refresh_topics(shipper)

    async def _refresh_topics(self, shipper: Shipper) -> None:
        self._topics = await shipper.topics()
        self._topics_at = time.monotonic()

    async def _publish(self, batch: list[Accepted], shipper: Shipper, dead: DeadLetters) -> None:
        """Write `events` last: its records certify that the others are written."""
        events: dict[TP, list[OutgoingRecord]] = defaultdict(list)
        others: dict[TP, list[OutgoingRecord]] = defaultdict(list)
        published = [
            (accepted.partition, event, _tenant_topic(event))
            for accepted in batch
            for event in self.lanes[accepted.partition].publish(accepted)
        ]
        await self._find_topics({topic for _, _, topic in published if topic}, shipper)
        for lane, event, topic in published:
            events[TP(EVENTS, lane)].append(public_record(event))
            if partitions := self._topics.get(topic):
                out = OutgoingRecord(event.key, event.value, _headers(event))
                others[TP(topic, lane % partitions)].append(out)
            if event.rejected is not None:
                await self._add_dead(others, lane, event, dead)
        FAILPOINTS.hit("before_publish")
        if others:
            await shipper.ship(others)
            FAILPOINTS.hit("half_published")
        if events:
            await shipper.ship(events)
            FAILPOINTS.hit("after_publish")
            self._written_at.update(dict.fromkeys((tp.partition for tp in events), now_ms()))
            self._count(batch, sum(map(len, events.values())))

    async def _add_dead(
        self, others: dict[TP, list[OutgoingRecord]], lane: int, event: Published, dead: DeadLetters
    ) -> None:
        letter = await dead.letter(event)
        others[TP(DEAD, lane)].append(OutgoingRecord(letter.key, letter.value, letter.headers))
        self._metrics.dead_letters.labels("all").inc()

    def _count(self, batch: list[Accepted], events: int) -> None:
        self.published += events
        self._metrics.decisions.labels("published").inc(events)
        lag_s = max(0.0, (now_ms() - batch[-1].record.at) / 1000)
        self._metrics.projection_lag_s.labels(EVENTS).observe(lag_s)


def _tenant_topic(event: Published) -> str:
    """Return the topic of the event's tenant; empty without a tenant."""
    return tenant_events(event.tenant).name if event.tenant else ""


def public_record(event: Published) -> OutgoingRecord:
    headers = _headers(event)
    if event.cursor:
        headers = (*headers, (HEADER, event.cursor))
    return OutgoingRecord(event.key, event.value, headers)


def repeated(entry: Entry, position: bytes) -> OutgoingRecord:
    """Return an event of `events` as it was written, with another position."""
    headers = tuple(header for header in entry.headers if header[0] != HEADER)
    return OutgoingRecord(entry.key or b"", entry.value or b"", (*headers, (HEADER, position)))


def _headers(event: Published) -> tuple[tuple[str, bytes], ...]:
    if not event.traceparent:
        return (CONTENT,)
    return (CONTENT, ("traceparent", event.traceparent.encode()))
