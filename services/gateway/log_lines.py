"""Lines that workers printed, read from the soft topic `logs`; losing one is harmless."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import msgspec

from services.gateway.sse import ALIVE, HELLO, end_frame
from shared.bus.log import Entry, Feed, Log
from shared.ledger.cloudevents import Malformed, decode
from shared.ledger.partition import TP

TOPIC = "logs"
LOOK_BACK = 20_000
"""Records of a lane that are searched for a job's lines, from the youngest back."""
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
    """One line, with its place in the output of its worker."""

    attempt: int
    rank: int
    line: int
    text: str


class JobLog:
    """One job's lines out of its lane; a line that is delivered twice is shown once."""

    def __init__(self, job_id: str, tenant: str) -> None:
        self._needle = job_id.encode()
        self._job_id = job_id
        self._tenant = tenant
        self._next: dict[tuple[int, int], int] = {}

    def lines(self, entry: Entry) -> Iterator[LogLine]:
        if entry.value is None or self._needle not in entry.value:
            return
        try:
            printed = msgspec.json.decode(decode(entry.value).body, type=LogBatch)
        except (Malformed, msgspec.MsgspecError, UnicodeDecodeError):
            return
        if (printed.job_id, printed.tenant) == (self._job_id, self._tenant):
            yield from self._fresh(printed)

    def _fresh(self, printed: LogBatch) -> Iterator[LogLine]:
        worker = (printed.attempt, printed.rank)
        due = self._next.get(worker, 0)
        for number, text in enumerate(printed.lines, printed.first_line):
            if number >= due:
                yield LogLine(printed.attempt, printed.rank, number, text)
        self._next[worker] = max(due, printed.first_line + len(printed.lines))


async def past_lines(open_log: Callable[[], Log], lane: int, job: JobLog) -> list[LogLine]:
    """What is there now."""
    feed, end = await _open(open_log, lane)
    try:
        found: list[LogLine] = []
        position = 0
        while polled := await feed.poll(POLL_S if position < end else QUIET_S, 2000):
            for entry in polled[TP(TOPIC, lane)]:
                position = entry.offset + 1
                found.extend(job.lines(entry))
        return found
    finally:
        await feed.close()


async def followed_lines(
    open_log: Callable[[], Log], lane: int, job: JobLog, allowed: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Frames of what is there and of what comes, until the client leaves or loses its key."""
    yield HELLO
    feed, _ = await _open(open_log, lane)
    try:
        while allowed():
            polled = await feed.poll(POLL_S, 2000)
            lines = [line for entry in polled.get(TP(TOPIC, lane), []) for line in job.lines(entry)]
            yield b"".join(map(_frame, lines)) if lines else ALIVE
        yield end_frame("key_revoked")
    finally:
        await feed.close()


async def _open(open_log: Callable[[], Log], lane: int) -> tuple[Feed, int]:
    place = TP(TOPIC, lane)
    bus = open_log()
    await bus.start()
    try:
        end = await bus.end(place)
        start = max(await bus.begin(place), end - LOOK_BACK)
    finally:
        await bus.stop()
    return await bus.feed({place: start}, lossy=True), end


def _frame(line: LogLine) -> bytes:
    return b"event: line\ndata: %b\n\n" % msgspec.json.encode(line)
