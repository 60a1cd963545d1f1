"""Reads `logs` once for all readers of output, and keeps its recent records by job.

A reader takes older lines from the store: what is not stored yet is younger than `KEPT_S`. Where
memory is short, the oldest records of the tenant that has most of it go.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import NamedTuple, TypeVar

from aiokafka.errors import KafkaError

from shared.bus.logs.log import Entry, Feed, Log
from shared.job_logs.chunk import JobKey, Run, Worker
from shared.job_logs.log_store import JobLogStore
from shared.job_logs.record import Printed, printed_of
from shared.ledger.errors import BusError
from shared.ledger.partition import TP
from shared.objects.objects import StoreUnreachable

TOPIC = "logs"
LOOK_BACK = 20_000
"""Records of a lane that are read at first where nothing says how far they are stored."""
POLL_S = 2.0
RETRY_S = 1.0
BEHIND_S = 5.0
"""Limit of the time in which `logs` is read up to its end."""
STEP_S = 0.02
KEPT_S = 1800.0
"""Three times as long as lines wait for their chunk."""
MOST_BYTES = 64 * 2**20
"""Of all records: four times what waits for its chunk."""
RECORD_BYTES = 600
"""Counted for each record besides its bytes."""
TURN_RECORDS = 200
"""After so many records of one job the loop serves others."""
MOST_OPEN = 20_000
OPEN_CHARS = 1024

T = TypeVar("T")

log = logging.getLogger(__name__)


class Held(NamedTuple):
    """A record of a job, with what is needed to decode it only for a reader of its lines."""

    offset: int
    entry: Entry
    read_s: float
    """When it was read."""
    worker: Worker
    first: int
    """Number of its first line."""
    next: int
    """Number of the line behind its last one."""
    is_last: bool
    """The output of its worker is complete."""


class HeldRun(NamedTuple):
    """The lines of a record from number `first` on, which are not decoded yet: at least one."""

    held: Held
    first: int

    @property
    def at_ms(self) -> int:
        return self.held.entry.timestamp

    @property
    def worker(self) -> Worker:
        return self.held.worker

    @property
    def next(self) -> int:
        return self.held.next

    def decode(self) -> Run:
        printed = printed_of(self.held.entry)
        run = printed.run_from(self.first, self.at_ms) if printed is not None else None
        assert run is not None
        return run


class OpenLine(NamedTuple):
    """The state of a line that its worker has not ended."""

    line: int
    text: str


class TenantRecords:
    """The jobs of one tenant's records in the order of their reading."""

    def __init__(self) -> None:
        self.jobs: deque[JobKey] = deque()
        self.size_bytes = 0


class RecentLines:
    """The recent records of `logs` by job; `positions` are the next offsets of the lanes."""

    def __init__(
        self,
        open_log: Callable[[], Log],
        partitions: int,
        store: JobLogStore | None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.open_log = open_log
        self._store = store
        self._lanes = range(partitions)
        self._most_bytes = most_bytes
        self._held: dict[JobKey, deque[Held]] = {}
        self._tenants: dict[str, TenantRecords] = {}
        self._size_bytes = 0
        self._open: dict[JobKey, dict[Worker, OpenLine]] = {}
        self._open_count = 0
        self._waiting: defaultdict[JobKey, set[asyncio.Event]] = defaultdict(set)
        self.positions: dict[int, int] = {}

    async def run(self) -> None:
        """Follow the topic until cancelled; after an error go on at the same offsets."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError, BusError, StoreUnreachable) as error:
                log.warning("reading output failed", extra={"reason": str(error)[:200]})
            await asyncio.sleep(RETRY_S)

    async def _follow(self) -> None:
        bus = self.open_log()
        await bus.start()
        try:
            for lane in self._lanes:
                if lane not in self.positions:
                    self.positions[lane] = await self._begin(bus, lane)
            starts = {TP(TOPIC, lane): self.positions[lane] for lane in self._lanes}
            feed = await bus.feed(starts, lossy=True)
            try:
                await self._take_all(feed)
            finally:
                await feed.close()
        finally:
            await bus.stop()

    async def _begin(self, bus: Log, lane: int) -> int:
        """Return where the records begin that may not be stored."""
        tp = TP(TOPIC, lane)
        end = await bus.end(tp)
        begin = max(await bus.begin(tp), end - LOOK_BACK)
        if self._store is None:
            return begin
        try:
            known = (await self._store.position(lane)).next
        except StoreUnreachable as error:
            log.warning("output is read without its store", extra={"reason": str(error)})
            return begin
        return known if begin <= known <= end else begin

    async def _take_all(self, feed: Feed) -> None:
        while True:
            for tp, entries in (await feed.poll(POLL_S)).items():
                for entry in entries:
                    self.take(tp.partition, entry)
            self._drop(time.monotonic())

    def take(self, lane: int, entry: Entry) -> None:
        """Keep a record of output, and wake those that follow its job."""
        printed = printed_of(entry)
        if printed is not None:
            job = printed.key(lane)
            self._note_open(job, printed)
            if printed.lines or printed.is_last:
                self._keep(job, _held(entry, printed))
            for event in self._waiting.get(job, ()):
                event.set()
        self.positions[lane] = entry.offset + 1

    def _keep(self, job: JobKey, held: Held) -> None:
        self._held.setdefault(job, deque()).append(held)
        tenant = self._tenants.setdefault(job.tenant, TenantRecords())
        tenant.jobs.append(job)
        size_bytes = _size(held)
        tenant.size_bytes += size_bytes
        self._size_bytes += size_bytes
        while self._size_bytes > self._most_bytes:
            self._drop_oldest(max(self._tenants.values(), key=lambda one: one.size_bytes))

    def _drop(self, now_s: float) -> None:
        """Drop records that are stored by now."""
        for tenant in list(self._tenants.values()):
            while tenant.jobs and now_s - self._held[tenant.jobs[0]][0].read_s > KEPT_S:
                self._drop_oldest(tenant)

    def _drop_oldest(self, tenant: TenantRecords) -> None:
        job = tenant.jobs.popleft()
        records = self._held[job]
        size_bytes = _size(records.popleft())
        if not records:
            del self._held[job]
        tenant.size_bytes -= size_bytes
        self._size_bytes -= size_bytes
        if not tenant.jobs:
            del self._tenants[job.tenant]

    def _note_open(self, job: JobKey, printed: Printed) -> None:
        """Keep the newest state of a line; a worker that has ended it has none."""
        lines = self._open.get(job, {})
        self._open_count -= lines.pop(printed.worker, None) is not None
        if printed.open_line:
            if self._open_count >= MOST_OPEN:
                # Each comes again as soon as it changes.
                self._open.clear()
                self._open_count, lines = 0, {}
            lines[printed.worker] = OpenLine(printed.next_line, printed.open_line[:OPEN_CHARS])
            self._open_count += 1
            self._open[job] = lines
        elif not lines:
            self._open.pop(job, None)

    def records(self, job: JobKey, after: int = -1) -> list[Held]:
        """Return the records of a job behind an offset."""
        newest = takewhile(lambda held: held.offset > after, reversed(self._held.get(job, ())))
        return list(newest)[::-1]

    def open_lines(self, job: JobKey) -> dict[Worker, OpenLine]:
        return dict(self._open.get(job, {}))

    @contextmanager
    def watched(self, job: JobKey) -> Iterator[asyncio.Event]:
        """Yield an event that is set when something of the job was read."""
        event = asyncio.Event()
        self._waiting[job].add(event)
        try:
            yield event
        finally:
            self._waiting[job].discard(event)
            if not self._waiting[job]:
                del self._waiting[job]

    async def end(self, lane: int) -> int | None:
        """Return where the lane ends now; None while the broker does not answer."""
        bus = self.open_log()
        try:
            await bus.start()
            return await bus.end(TP(TOPIC, lane))
        except (KafkaError, OSError):
            return None
        finally:
            await bus.stop()


async def reach_end(recent: RecentLines, lane: int) -> None:
    """Return once all is read that `logs` has now. Raises TimeoutError if the broker stalls."""
    async with asyncio.timeout(BEHIND_S):
        while (end := await recent.end(lane)) is None:
            await asyncio.sleep(STEP_S)
        while recent.positions.get(lane, -1) < end:
            await asyncio.sleep(STEP_S)


async def in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield items, and let the loop serve others now and then."""
    for count, item in enumerate(items, 1):
        yield item
        if count % TURN_RECORDS == 0:
            await asyncio.sleep(0)


def _held(entry: Entry, printed: Printed) -> Held:
    return Held(
        entry.offset,
        entry,
        time.monotonic(),
        printed.worker,
        printed.first_line,
        printed.next_line,
        printed.is_last,
    )


def _size(held: Held) -> int:
    return len(held.entry.value or b"") + RECORD_BYTES
