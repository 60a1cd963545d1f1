"""Output lines of workers, read from the topic `logs`; a lost line does no harm."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

import msgspec
from aiokafka.errors import KafkaError

from services.gateway.streams.sse import ALIVE, OPENING, end_frame
from shared.bus.logs.log import Entry, Feed, Log
from shared.ledger.cloudevents import Malformed, decode
from shared.ledger.partition import TP
from shared.projections.jobs import ENDED_PHASES

TOPIC = "logs"
LOOK_BACK = 20_000
"""Number of the lane's most recent records that are searched for a job's lines."""
POLL_S = 2.0
SOON_S = 0.25
"""As `POLL_S`, for `SOON_FOR_S` after the output of a worker was complete."""
SOON_FOR_S = 5.0
QUIET_S = 0.3
SETTLED_S = 6.0
"""Silence after the end of a job in which its last lines arrive where a worker's end of output does
not, as of a node that is away: an agent reports the end of a worker before its last lines, and
sends them again 5 s after an executor has not taken them."""
ENDED = "ended"
"""Reason of the end of a stream that holds all lines."""
OUTPUT_MISSING = "output_missing"
"""Reason of the end of a stream of a job that has ended, where lines of a worker may be missing."""


class JobNow(NamedTuple):
    """A job in its read model; `attempt` is 0 before it is placed."""

    phase: str
    reason: str
    attempt: int
    workers: int
    prints: bool = True
    """Whether its workers are processes; those of a virtual pool have no output."""
    started: bool = True
    """Whether its last attempt did; the output of another ends only where a step of it was."""
    silent_nodes: tuple[str, ...] = ()
    """Nodes of its last attempt that are not heard."""

    @property
    def has_ended(self) -> bool:
        return self.phase in ENDED_PHASES


ReadJob = Callable[[], Awaitable[JobNow | None]]
"""Returns None as long as the read model cannot be read."""


class LogBatch(msgspec.Struct):
    """The fields of `LogLines` that are shown."""

    job_id: str
    tenant: str
    rank: int
    attempt: int
    first_line: int
    lines: list[str]
    is_last: bool = False
    """The output of the worker is complete; older agents do not say so."""


class LogLine(msgspec.Struct, frozen=True):
    """One line with its position in the output of its worker."""

    attempt: int
    rank: int
    line: int
    text: str


class JobLog:
    """Filters one job's lines from its lane; a line that is delivered twice is yielded once."""

    def __init__(self, job_id: str, tenant: str) -> None:
        self._needle = job_id.encode()
        self._job_id = job_id
        self._tenant = tenant
        self._next: dict[tuple[int, int], int] = {}
        self._ended: set[tuple[int, int]] = set()

    @property
    def ended_workers(self) -> int:
        """Number of workers, of all attempts, whose output is complete."""
        return len(self._ended)

    def open_workers(self, job: JobNow) -> list[int]:
        """Return the workers of the last attempt of which lines may be missing."""
        return [rank for rank in range(job.workers) if (job.attempt, rank) not in self._ended]

    def lines(self, entry: Entry) -> Iterator[LogLine]:
        if entry.value is None or self._needle not in entry.value:
            return
        try:
            batch = msgspec.json.decode(decode(entry.value).body, type=LogBatch)
        except (Malformed, msgspec.MsgspecError, UnicodeDecodeError):
            return
        if (batch.job_id, batch.tenant) == (self._job_id, self._tenant):
            yield from self._new_lines(batch)
            if batch.is_last:
                self._ended.add((batch.attempt, batch.rank))

    def _new_lines(self, batch: LogBatch) -> Iterator[LogLine]:
        worker = (batch.attempt, batch.rank)
        due = self._next.get(worker, 0)
        for number, text in enumerate(batch.lines, batch.first_line):
            if number >= due:
                yield LogLine(batch.attempt, batch.rank, number, text)
        self._next[worker] = max(due, batch.first_line + len(batch.lines))


async def read_lines(open_log: Callable[[], Log], lane: int, job: JobLog) -> list[LogLine]:
    """Return the lines that the topic holds now; raises TimeoutError if the broker stalls."""
    feed, position, end = await _open(open_log, lane)
    try:
        lines: list[LogLine] = []
        while polled := await feed.poll(POLL_S if position < end else QUIET_S, 2000):
            for entry in polled[TP(TOPIC, lane)]:
                position = entry.offset + 1
                lines.extend(job.lines(entry))
        if position < end:
            raise TimeoutError(f"{TOPIC}-{lane} ends at {end}; nothing read at {position}")
        return lines
    finally:
        await feed.close()


async def follow_lines(
    open_log: Callable[[], Log],
    lane: int,
    job: JobLog,
    allowed: Callable[[], bool],
    read_job: ReadJob,
    *,
    shows_status: bool = False,
) -> AsyncIterator[bytes]:
    """Yield frames of present and future lines until the job has ended and its output is complete.

    With `shows_status` also the state of the job, at first and when it changes. Ends before if the
    client leaves or its key is revoked.
    """
    yield OPENING
    feed, position, _ = await _open(open_log, lane)
    completion, shown = Completion(read_job, job), None
    try:
        while allowed():
            polled = await feed.poll(completion.pause_s(), 2000)
            entries = polled.get(TP(TOPIC, lane), [])
            lines = [line for entry in entries for line in job.lines(entry)]
            position = entries[-1].offset + 1 if entries else position
            if lines:
                completion.note_lines()
            yield b"".join(map(_frame, lines)) if lines else ALIVE
            is_complete = await completion.reached(position, lambda: _end(open_log, lane))
            if shows_status and completion.job is not None and completion.job != shown:
                shown = completion.job
                yield _status_frame(shown)
            if is_complete:
                yield _end_frame_of(completion.missing_workers())
                return
        yield end_frame("key_revoked")
    finally:
        await feed.close()


class Completion:
    """Decides when a job's output is complete: the job has ended, and so has the output of each
    worker of its last attempt, or no line came for a while.

    After a silence the log is read to where it ends at that moment, so that a reader that is behind
    misses nothing. `read_job` is asked every `POLL_S` at most, or every `SOON_S`.
    """

    def __init__(self, read_job: ReadJob, log: JobLog) -> None:
        self.job: JobNow | None = None
        """The job as it was read last."""
        self._read_job = read_job
        self._log = log
        self._ended_workers = 0
        self._soon_until_s = self._read_at_s = -math.inf
        self._quiet_since_s = 0.0
        self._end: int | None = None

    def pause_s(self) -> float:
        """Return how long to wait for lines before the job is looked at again, s."""
        now_s = asyncio.get_running_loop().time()
        if self._log.ended_workers != self._ended_workers:
            self._ended_workers = self._log.ended_workers
            self._soon_until_s = now_s + SOON_FOR_S
        return SOON_S if now_s < self._soon_until_s else POLL_S

    def note_lines(self) -> None:
        """Begin the silence anew."""
        self._quiet_since_s, self._end = asyncio.get_running_loop().time(), None

    def missing_workers(self) -> list[int]:
        """Return the workers with an output that has not ended, after `reached` returned true."""
        job = self.job
        if job is None or not (job.attempt and job.prints and job.started):
            return []
        return self._log.open_workers(job)

    async def reached(self, position: int, end: Callable[[], Awaitable[int | None]]) -> bool:
        """Return whether all is read at this offset of the log; `end` returns where it ends."""
        job = await self._job_now()
        if job is None or not job.has_ended:
            return False
        has_output = job.attempt > 0 and job.prints
        if has_output and not self._log.open_workers(job):
            return True
        now_s = asyncio.get_running_loop().time()
        if has_output and now_s - self._quiet_since_s < SETTLED_S:
            return False
        if self._end is None:
            self._end = await end()
        return self._end is not None and position >= self._end

    async def _job_now(self) -> JobNow | None:
        """Return the job, which is not read again once it has ended; None between two readings."""
        if self.job is not None and self.job.has_ended:
            return self.job
        now_s = asyncio.get_running_loop().time()
        if now_s - self._read_at_s < self.pause_s():
            return None
        self._read_at_s, job = now_s, await self._read_job()
        self.job = job or self.job
        if job is not None and job.has_ended:
            self.note_lines()
        return job


async def _end(open_log: Callable[[], Log], lane: int) -> int | None:
    """Return where the lane ends now; None while the broker does not answer."""
    bus = open_log()
    try:
        await bus.start()
        return await bus.end(TP(TOPIC, lane))
    except (KafkaError, OSError):
        return None
    finally:
        await bus.stop()


async def _open(open_log: Callable[[], Log], lane: int) -> tuple[Feed, int, int]:
    """Return a feed of the most recent records, the offset of its first, and the end."""
    tp = TP(TOPIC, lane)
    bus = open_log()
    await bus.start()
    try:
        end = await bus.end(tp)
        start = max(await bus.begin(tp), end - LOOK_BACK)
    finally:
        await bus.stop()
    return await bus.feed({tp: start}, lossy=True), start, end


def _frame(line: LogLine) -> bytes:
    return b"event: line\ndata: %b\n\n" % msgspec.json.encode(line)


def _end_frame_of(missing_workers: list[int]) -> bytes:
    if missing_workers:
        return end_frame(OUTPUT_MISSING, workers=missing_workers)
    return end_frame(ENDED)


def _status_frame(job: JobNow) -> bytes:
    status: dict[str, object] = {"phase": job.phase, "reason": job.reason, "attempt": job.attempt}
    if job.silent_nodes:
        status["silent_nodes"] = job.silent_nodes
    return b"event: status\ndata: %b\n\n" % msgspec.json.encode(status)
