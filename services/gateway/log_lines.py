"""Output lines of workers, read from the topic `logs`; a lost line does no harm."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import msgspec

from services.gateway.sse import ALIVE, OPENING, end_frame
from shared.bus.log import Entry, Feed, Log
from shared.ledger.cloudevents import Malformed, decode
from shared.ledger.partition import TP

TOPIC = "logs"
LOOK_BACK = 20_000
"""Number of the lane's most recent records that are searched for a job's lines."""
POLL_S = 2.0
QUIET_S = 0.3


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
    open_log: Callable[[], Log], lane: int, job: JobLog, allowed: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield frames of present and future lines until the client leaves or its key is revoked."""
    yield OPENING
    feed, *_ = await _open(open_log, lane)
    try:
        while allowed():
            polled = await feed.poll(POLL_S, 2000)
            lines = [line for entry in polled.get(TP(TOPIC, lane), []) for line in job.lines(entry)]
            yield b"".join(map(_frame, lines)) if lines else ALIVE
        yield end_frame("key_revoked")
    finally:
        await feed.close()


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
