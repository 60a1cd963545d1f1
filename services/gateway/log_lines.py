"""Output lines of workers, read from the topic `logs`; a lost line does no harm."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import msgspec
from aiokafka.errors import KafkaError

from services.gateway.sse import ALIVE, OPENING, end_frame
from shared.bus.log import Entry, Feed, Log
from shared.ledger.cloudevents import Malformed, decode
from shared.ledger.partition import TP

TOPIC = "logs"
LOOK_BACK = 20_000
"""Number of the lane's most recent records that are searched for a job's lines."""
POLL_S = 2.0
QUIET_S = 0.3
SETTLED_S = 6.0
"""Silence after the end of a job in which its last lines arrive: an agent reports the end before
them, and sends them again 5 s after an executor has not taken them."""
ENDED = "ended"
"""Reason of the end of a stream that holds all lines."""


HasEnded = Callable[[], Awaitable[bool]]


class LogBatch(msgspec.Struct):
    """The fields of `LogLines` that are shown."""

    job_id: str
    tenant: str
    rank: int
    attempt: int
    first_line: int
    lines: list[str]


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

    def lines(self, entry: Entry) -> Iterator[LogLine]:
        if entry.value is None or self._needle not in entry.value:
            return
        try:
            batch = msgspec.json.decode(decode(entry.value).body, type=LogBatch)
        except (Malformed, msgspec.MsgspecError, UnicodeDecodeError):
            return
        if (batch.job_id, batch.tenant) == (self._job_id, self._tenant):
            yield from self._new_lines(batch)

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
    has_ended: HasEnded,
) -> AsyncIterator[bytes]:
    """Yield frames of present and future lines until the job has ended and its output is complete.

    Ends before if the client leaves or its key is revoked.
    """
    yield OPENING
    feed, position, _ = await _open(open_log, lane)
    completion = Completion(has_ended)
    try:
        while allowed():
            polled = await feed.poll(POLL_S, 2000)
            entries = polled.get(TP(TOPIC, lane), [])
            lines = [line for entry in entries for line in job.lines(entry)]
            position = entries[-1].offset + 1 if entries else position
            if lines:
                completion.note_lines()
            yield b"".join(map(_frame, lines)) if lines else ALIVE
            if await completion.reached(position, lambda: _end(open_log, lane)):
                yield end_frame(ENDED)
                return
        yield end_frame("key_revoked")
    finally:
        await feed.close()


class Completion:
    """Decides when a job's output is complete: the job has ended, and no line came for a while.

    Then the log is read to where it ends at that moment, so that a reader that is behind misses
    nothing. `has_ended` is asked every `POLL_S` at most.
    """

    def __init__(self, has_ended: HasEnded) -> None:
        self._has_ended = has_ended
        self._is_over = False
        self._asked_s = -math.inf
        self._quiet_since_s = 0.0
        self._end: int | None = None

    def note_lines(self) -> None:
        """Begin the silence anew."""
        self._quiet_since_s, self._end = asyncio.get_running_loop().time(), None

    async def reached(self, position: int, end: Callable[[], Awaitable[int | None]]) -> bool:
        """Return whether all is read at this offset of the log; `end` returns where it ends."""
        now_s = asyncio.get_running_loop().time()
        if not self._is_over:
            if now_s - self._asked_s < POLL_S:
                return False
            self._asked_s, self._is_over = now_s, await self._has_ended()
            self.note_lines()
            return False
        if now_s - self._quiet_since_s < SETTLED_S:
            return False
        if self._end is None:
            self._end = await end()
        return self._end is not None and position >= self._end


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
