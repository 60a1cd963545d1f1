"""The lines of one job are read from its lane, each once, and a stalled broker is an error."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from services.gateway import log_lines
from services.gateway.log_lines import JobLog, LogLine, follow_lines, read_lines
from services.gateway.sse import OPENING
from shared.bus.log import Entry, Feed
from shared.bus.memory import MemoryBroker, MemoryLog
from shared.ledger import cloudevents
from shared.ledger.partition import TP

LANE = TP("logs", 1)


def printed(first: int, *lines: str, job: str = "j1", tenant: str = "ada", rank: int = 0) -> bytes:
    data = {
        "job_id": job,
        "tenant": tenant,
        "rank": rank,
        "attempt": 1,
        "first_line": first,
        "lines": lines,
    }
    return cloudevents.encode(
        id="l", source="/berth/executor", type="worker.printed.v1", data=json.dumps(data).encode()
    )


def texts(*values: bytes | None) -> list[str]:
    """Return what a reader of job j1 shows of these records."""
    job = JobLog("j1", "ada")
    return [line.text for value in values for line in job.lines(Entry(0, None, value))]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "QUIET_S", 0.0)
    monkeypatch.setattr(log_lines, "POLL_S", 0.0)


def test_a_line_that_comes_twice_is_shown_once() -> None:
    assert texts(printed(0, "a", "b"), printed(0, "a", "b", "c")) == ["a", "b", "c"]
    assert texts(printed(3, "d"), printed(0, "a")) == ["d"]


def test_workers_count_their_lines_apart() -> None:
    assert texts(printed(0, "a"), printed(0, "x", rank=1)) == ["a", "x"]


@pytest.mark.parametrize(
    "value", [None, b"j1", b'{"j1":', printed(0, "a", job="j12"), printed(0, "a", tenant="bob")]
)
def test_records_of_other_jobs_and_no_records_are_passed_over(value: bytes | None) -> None:
    assert texts(value, printed(0, "mine")) == ["mine"]


async def test_the_lines_that_are_there_are_read() -> None:
    broker = MemoryBroker()
    broker.append(LANE, printed(0, "a"))
    broker.append(LANE, printed(1, "b"))
    lines = await read_lines(lambda: MemoryLog(broker), 1, JobLog("j1", "ada"))
    assert lines == [LogLine(1, 0, 0, "a"), LogLine(1, 0, 1, "b")]


async def test_a_lane_without_records_has_no_lines() -> None:
    assert await read_lines(lambda: MemoryLog(MemoryBroker()), 1, JobLog("j1", "ada")) == []


class Stalled(MemoryLog):
    """A client whose feed stands before the last record and reads nothing more."""

    async def feed(self, start: Mapping[TP, int], *, lossy: bool = False) -> Feed:
        feed = await super().feed(start, lossy=lossy)
        await feed.seek(LANE, len(self.broker.entries(LANE)))
        return feed


async def test_lines_that_a_broker_does_not_give_in_time_are_an_error() -> None:
    broker = MemoryBroker()
    broker.append(LANE, printed(0, "a"))
    with pytest.raises(TimeoutError, match="logs-1 ends at 1; nothing read at 0"):
        await read_lines(lambda: Stalled(broker), 1, JobLog("j1", "ada"))


async def test_lines_are_followed_until_the_right_to_them_ends() -> None:
    broker, rights = MemoryBroker(), [True, True, False]
    broker.append(LANE, printed(0, "a"))
    frames = follow_lines(lambda: MemoryLog(broker), 1, JobLog("j1", "ada"), lambda: rights.pop(0))
    assert await anext(frames) == OPENING
    assert b'"text":"a"' in await anext(frames)
    broker.append(LANE, printed(1, "b"))
    assert b'"text":"b"' in await anext(frames)
    assert await anext(frames) == b'event: end\ndata: {"reason":"key_revoked"}\n\n'
