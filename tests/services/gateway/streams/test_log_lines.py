"""The lines of one job are read from its lane, each once, and a stalled broker is an error."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from services.gateway.streams import log_lines
from services.gateway.streams.log_lines import (
    Completion,
    JobLog,
    JobNow,
    LogLine,
    follow_lines,
    read_lines,
)
from services.gateway.streams.sse import OPENING
from shared.bus.logs.log import Entry, Feed
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from tests.patience import PATIENCE_S

LANE = TP("logs", 1)


RUNS, ENDED = JobNow("running", "", 1, 2), JobNow("succeeded", "", 1, 2)


def printed(
    first: int,
    *lines: str,
    job: str = "j1",
    tenant: str = "ada",
    rank: int = 0,
    attempt: int = 1,
    **more: bool,
) -> bytes:
    data = {
        **more,
        "job_id": job,
        "tenant": tenant,
        "rank": rank,
        "attempt": attempt,
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
    monkeypatch.setattr(log_lines, "SOON_S", 0.0)


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


async def goes_on() -> JobNow | None:
    return RUNS


def complete(*workers: tuple[int, int]) -> JobLog:
    """Return the log of a job in which the output of these attempts and ranks is complete."""
    job = JobLog("j1", "ada")
    for attempt, rank in workers:
        record = printed(0, attempt=attempt, rank=rank, is_last=True)
        assert list(job.lines(Entry(0, None, record))) == []
    return job


async def test_lines_are_followed_until_the_job_has_ended_and_its_last_lines_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_lines, "SETTLED_S", 0.0)
    broker = MemoryBroker()
    broker.append(LANE, printed(0, "a"))

    async def ends() -> JobNow:
        broker.append(LANE, printed(1, "after the end"))
        broker.append(LANE, printed(0, "of another", job="j2"))
        return ENDED

    log, job = lambda: MemoryLog(broker), JobLog("j1", "ada")
    frames = [frame async for frame in follow_lines(log, 1, job, lambda: True, ends)]
    shown = [
        json.loads(line)["text"] for line in re.findall(rb"line\ndata: (.*)", b"".join(frames))
    ]
    assert shown == ["a", "after the end"]
    assert frames[-1] == b'event: end\ndata: {"reason":"output_missing","workers":[0,1]}\n\n'


@pytest.mark.parametrize(
    ("job", "log", "missing"),
    [
        (ENDED, complete((1, 0)), [1]),
        (ENDED, complete((1, 0), (1, 1)), []),
        (ENDED._replace(attempt=2), complete((1, 0), (1, 1)), [0, 1]),
        (ENDED._replace(started=False), complete(), []),
        (ENDED._replace(prints=False), complete(), []),
        (ENDED._replace(attempt=0), complete(), []),
    ],
)
async def test_workers_with_output_that_did_not_end_are_named(
    monkeypatch: pytest.MonkeyPatch, job: JobNow, log: JobLog, missing: list[int]
) -> None:
    monkeypatch.setattr(log_lines, "SETTLED_S", 0.0)

    async def ended() -> JobNow:
        return job

    async def end() -> int | None:
        return 5

    completion = Completion(ended, log)
    assert await completion.reached(5, end)
    assert completion.missing_workers() == missing


async def test_output_is_complete_when_all_is_read_that_was_there_after_a_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_lines, "SETTLED_S", 0.0)
    states, ends = [None, RUNS, ENDED], [None, 7, 9]

    async def ended() -> JobNow | None:
        return states.pop(0)

    async def end() -> int | None:
        return ends.pop(0)

    completion = Completion(ended, complete((1, 0)))
    assert not await completion.reached(5, end), "the read model does not answer"
    assert not await completion.reached(5, end), "the job runs"
    assert not await completion.reached(5, end), "the broker does not answer"
    assert not await completion.reached(6, end), "one record is not read"
    completion.note_lines()
    assert not await completion.reached(8, end), "that record had lines"
    assert await completion.reached(9, end)
    assert not states and not ends


async def test_a_line_begins_the_silence_after_the_end_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_lines, "SETTLED_S", 10 * PATIENCE_S)

    async def ended() -> JobNow:
        return ENDED

    async def end() -> int | None:
        raise AssertionError("the silence has just begun")

    completion = Completion(ended, complete((1, 0), (2, 1)))
    assert not await completion.reached(5, end)
    assert not await completion.reached(5, end)


async def test_lines_are_followed_until_the_right_to_them_ends() -> None:
    broker, rights = MemoryBroker(), [True, True, False]
    broker.append(LANE, printed(0, "a"))
    log, job = lambda: MemoryLog(broker), JobLog("j1", "ada")
    frames = follow_lines(log, 1, job, lambda: rights.pop(0), goes_on)
    assert await anext(frames) == OPENING
    assert b'"text":"a"' in await anext(frames)
    broker.append(LANE, printed(1, "b"))
    assert b'"text":"b"' in await anext(frames)
    assert await anext(frames) == b'event: end\ndata: {"reason":"key_revoked"}\n\n'


@pytest.mark.parametrize(
    ("job", "log", "is_read"),
    [
        (ENDED, complete((1, 0), (1, 1)), True),
        (JobNow("failed", "", 3, 1), complete((3, 0)), True),
        (JobNow("cancelled", "", 0, 2), complete(), False),
        (JobNow("succeeded", "", 1, 2, prints=False), complete(), False),
    ],
)
async def test_complete_output_and_that_of_a_job_without_any_waits_for_no_silence(
    monkeypatch: pytest.MonkeyPatch, job: JobNow, log: JobLog, is_read: bool
) -> None:
    monkeypatch.setattr(log_lines, "SETTLED_S", 10 * PATIENCE_S)
    asked: list[int] = []

    async def ended() -> JobNow:
        return job

    async def end() -> int | None:
        asked.append(1)
        return 5

    assert await Completion(ended, log).reached(5, end)
    assert bool(asked) is not is_read, "what came before is read where the log ends by itself"


async def test_a_job_is_looked_at_soon_once_the_output_of_a_worker_is_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_lines, "POLL_S", 10 * PATIENCE_S)
    log = complete()
    completion = Completion(goes_on, log)
    assert completion.pause_s() == log_lines.POLL_S
    list(log.lines(Entry(0, None, printed(0, is_last=True))))
    assert completion.pause_s() == log_lines.SOON_S


@pytest.mark.parametrize("shows_status", [False, True])
async def test_the_state_of_the_job_is_shown_where_it_is_wanted_and_when_it_changes(
    monkeypatch: pytest.MonkeyPatch, shows_status: bool
) -> None:
    monkeypatch.setattr(log_lines, "SETTLED_S", 0.0)
    waits = JobNow("waiting", "no_capacity", 1, 2)
    silent = RUNS._replace(silent_nodes=("n1",))
    states = [RUNS, RUNS, None, silent, RUNS, waits, ENDED]

    async def read() -> JobNow | None:
        return states.pop(0)

    log, job = lambda: MemoryLog(MemoryBroker()), JobLog("j1", "ada")
    frames = follow_lines(log, 1, job, lambda: True, read, shows_status=shows_status)
    written = b"".join([frame async for frame in frames])
    shown = [json.loads(data) for data in re.findall(rb"event: status\ndata: (.*)", written)]
    expected = [
        {"phase": "running", "reason": "", "attempt": 1},
        {"phase": "running", "reason": "", "attempt": 1, "silent_nodes": ["n1"]},
        {"phase": "running", "reason": "", "attempt": 1},
        {"phase": "waiting", "reason": "no_capacity", "attempt": 1},
        {"phase": "succeeded", "reason": "", "attempt": 1},
    ]
    assert shown == (expected if shows_status else [])
