"""Stores the output of jobs in chunks: what it reads of the topic `logs`, each line once.

A chunk is stored before the position behind its lines. After a death in between the records are
read again, and the names of the chunks say which of their lines are stored.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from aiokafka.errors import KafkaError

from shared.bus.failpoints import FAILPOINTS
from shared.bus.logs.log import Entry, Feed, Log, fetch
from shared.job_logs.bound import LEFT_SHARE, removable
from shared.job_logs.buffers import BufferKey, Buffers, ChunkPace
from shared.job_logs.chunk import Chunk, JobKey, Run, Worker
from shared.job_logs.log_store import JobLogStore, Position
from shared.job_logs.record import Printed, printed_of
from shared.ledger.errors import BusError, OutcomeUnknown
from shared.ledger.partition import TP
from shared.objects.objects import StoreFull, StoreUnreachable, counted_bytes

TOPIC = "logs"
POLL_S = 1.0
MAX_RECORDS = 500
RETRY_S = 5.0
POSITION_S = 5.0
"""Between two positions of a lane."""
KNOWN_JOBS = 4096
"""Jobs of which it is known what is stored; those of others are listed again."""
RUNBOOK = "docs/operations/output.md#joblogsbehind"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Stored:
    """The lines of a job that are stored, or lie in a buffer."""

    size_bytes: int = 0
    due: dict[Worker, int] = field(default_factory=dict)
    ended: set[Worker] = field(default_factory=set)

    def add(self, chunk: Chunk) -> None:
        self.size_bytes += counted_bytes(chunk.size)
        self.note(chunk.worker, chunk.next, is_last=chunk.is_last)

    def note(self, worker: Worker, next_line: int, *, is_last: bool) -> None:
        self.due[worker] = max(next_line, self.due.get(worker, 0))
        if is_last:
            self.ended.add(worker)


@dataclass(slots=True)
class Place:
    """The positions to which a lane is read and stored."""

    next: int
    last_ms: int = 0
    stored: Position = Position()
    stored_s: float = 0.0


class JobLogWriter:
    """Stores lines until cancelled; while the store is away they wait in the topic.

    `most_bytes` returns the bound of the chunks of one job of a lane.
    """

    def __init__(
        self,
        open_log: Callable[[], Log],
        store: JobLogStore,
        partitions: int,
        most_bytes: Callable[[int], int],
        pace: ChunkPace | None = None,
    ) -> None:
        self._open_log = open_log
        self._store = store
        self._lanes = range(partitions)
        self._most_bytes = most_bytes
        self._pace = pace or ChunkPace()
        self._done_s = time.monotonic()
        self._reason = ""
        self._begin()

    def _begin(self) -> None:
        self._buffers = Buffers(self._pace)
        self._places: dict[int, Place] = {}
        self._known: OrderedDict[JobKey, Stored] = OrderedDict()

    def behind_s(self) -> float:
        """Return the seconds since all was stored that was due."""
        return time.monotonic() - self._done_s

    async def run(self) -> None:
        while True:
            try:
                await self.session()
            except (StoreFull, StoreUnreachable, KafkaError, BusError, OSError) as error:
                self._note_error(str(error) or type(error).__name__)
            await asyncio.sleep(RETRY_S)

    def _note_error(self, reason: str) -> None:
        """Log an error once, not at each try."""
        if reason != self._reason:
            log.error("output of jobs is not stored: %s; see %s", reason[:300], RUNBOOK)
        self._reason = reason

    async def session(self) -> None:
        """Read on from the stored positions. Raises what the store or the topic raises."""
        self._begin()
        await self._store.check_writable()
        bus = self._open_log()
        await bus.start()
        try:
            for lane in self._lanes:
                self._places[lane] = await self._place(bus, lane)
            starts = {TP(TOPIC, lane): place.next for lane, place in self._places.items()}
            feed = await bus.feed(starts, lossy=True)
            try:
                await self._follow(feed)
            finally:
                await feed.close()
        finally:
            await bus.stop()

    async def _place(self, bus: Log, lane: int) -> Place:
        """Return where to read on; at the begin of a topic that is not the one of the position."""
        tp, known = TP(TOPIC, lane), await self._store.position(lane)
        begin, end = await bus.begin(tp), await bus.end(tp)
        if begin < known.next <= end:
            before = await fetch(bus, tp, known.next - 1, 1, POLL_S)
            if before and before[0].timestamp == known.at_ms:
                return Place(known.next, known.at_ms, known)
        return Place(begin, 0, known)

    async def _follow(self, feed: Feed) -> None:
        while True:
            polled = await feed.poll(POLL_S, MAX_RECORDS)
            for tp, entries in polled.items():
                for entry in entries:
                    await self._take(tp.partition, entry)
            await self.store_due(time.monotonic())
            if sum(map(len, polled.values())) < MAX_RECORDS:
                self._done_s, self._reason = time.monotonic(), ""

    async def _take(self, lane: int, entry: Entry) -> None:
        place = self._places[lane]
        printed = printed_of(entry)
        if printed is not None and (printed.lines or printed.is_last):
            await self._buffer(printed.key(lane), printed, entry, place.last_ms)
        place.next, place.last_ms = entry.offset + 1, entry.timestamp

    async def _buffer(self, job: JobKey, printed: Printed, entry: Entry, before_ms: int) -> None:
        """Keep the lines that are not stored yet."""
        stored, worker = await self._stored(job), printed.worker
        if worker in stored.ended:
            return
        due = max(stored.due.get(worker, 0), printed.first_line)
        run = printed.run_from(due, entry.timestamp)
        if run is None and not printed.is_last:
            return
        run = run or Run(entry.timestamp, due, [])
        key = BufferKey(job, worker)
        buffer = self._buffers.buffer(key, entry.offset, before_ms, time.monotonic())
        self._buffers.add(buffer, run, is_last=printed.is_last)
        stored.note(worker, run.next, is_last=printed.is_last)

    async def _stored(self, job: JobKey) -> Stored:
        """Return what is stored of a job, by the names of its chunks where it is not known."""
        stored = self._known.get(job)
        if stored is None:
            stored = Stored()
            for chunk in await self._store.chunks(job):
                stored.add(chunk)
            self._known[job] = stored
            if len(self._known) > KNOWN_JOBS:
                await self._forget()
        self._known.move_to_end(job)
        return stored

    async def _forget(self) -> None:
        """Forget the job without output for the longest time; its lines are stored before."""
        oldest = next(iter(self._known))
        for key in self._buffers.keys_of(oldest):
            await self._put(key)
        del self._known[oldest]

    async def store_due(self, now_s: float) -> None:
        """Store the chunks that are due, then how far each lane is stored."""
        for key in self._buffers.due(now_s):
            await self._put(key)
        for lane, place in self._places.items():
            if now_s - place.stored_s >= POSITION_S:
                await self._put_position(lane, place, now_s)

    async def _put(self, key: BufferKey) -> None:
        chunk, runs = self._buffers.peek(key)
        FAILPOINTS.hit("before_chunk")
        size = await self._store.put(key.job, chunk, runs)
        FAILPOINTS.hit("after_chunk")
        self._buffers.stored(key)
        stored = await self._stored(key.job)
        stored.size_bytes += counted_bytes(size)
        if stored.size_bytes > self._most_bytes(key.job.lane):
            stored.size_bytes = await self._shrink(key.job)

    async def _put_position(self, lane: int, place: Place, now_s: float) -> None:
        position = Position(*(self._buffers.oldest(lane) or (place.next, place.last_ms)))
        if position != place.stored:
            if await self._store.position(lane) != place.stored:
                raise OutcomeUnknown(f"another process stores the output of lane {lane}")
            await self._store.put_position(lane, position)
            FAILPOINTS.hit("after_position")
            place.stored = position
        place.stored_s = now_s

    async def _shrink(self, job: JobKey) -> int:
        """Remove lines of a job down to `LEFT_SHARE`; return the bytes that are left."""
        chunks, most = await self._store.chunks(job), self._most_bytes(job.lane)
        left = sum(counted_bytes(chunk.size) for chunk in chunks)
        for chunk in removable(chunks, most):
            if left <= most * LEFT_SHARE:
                break
            await self._store.remove(job, chunk)
            left -= counted_bytes(chunk.size)
        return left
