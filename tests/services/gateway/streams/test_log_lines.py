"""The lines of one job are read from its chunks and from what was read since, each once."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from services.gateway.streams import completion, log_lines, recent_lines
from services.gateway.streams.completion import ReadJob
from services.gateway.streams.job_log import ALL, JobNow, LogLine, Selection
from services.gateway.streams.log_lines import JobOutput, Shows, follow_lines, is_stored, read_lines
from services.gateway.streams.recent_lines import RecentLines, reach_end
from services.gateway.streams.sse import OPENING
from shared.bus.logs.log import Entry
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.job_logs.chunk import JobKey, Run, Worker, chunk_of
from shared.job_logs.log_store import JobLogStore
from shared.job_logs.record import Printed, printed_of
from shared.ledger.partition import TP
from shared.objects.objects import Objects, StoreUnreachable
from tests.shared.job_logs.printing import printed

LANE = TP("logs", 1)
JOB = JobKey(1, "ada", "j1")
RUNS, ENDED = JobNow("running", "", 1, 2), JobNow("succeeded", "", 1, 2)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_S", "SOON_S", "SETTLED_S"):
        monkeypatch.setattr(completion, name, 0.0)


@pytest.fixture
def store(tmp_path: Path) -> JobLogStore:
    return JobLogStore(str(tmp_path), writes=True)


class Topic:
    """The lane of a broker, of which a gateway has read all."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.recent = RecentLines(lambda: MemoryLog(self.broker), 2, None)
        self.recent.positions[1] = 0

    def append(self, value: bytes, at_ms: int = 0) -> None:
        offset = self.broker.append(LANE, value, timestamp=at_ms)
        self.recent.take(1, Entry(offset, None, value, (), at_ms))


async def put(
    store: JobLogStore, first: int, *texts: str, at_ms: int = 0, rank: int = 0, last: bool = False
) -> None:
    runs = [Run(at_ms, first, list(texts))]
    await store.put(JOB, chunk_of(Worker(1, rank), runs, last), runs)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the offsets of the records that are decoded from now on."""
    offsets: list[int] = []

    def noted(entry: Entry) -> Printed | None:
        offsets.append(entry.offset)
        return printed_of(entry)

    for module in (recent_lines, log_lines):
        monkeypatch.setattr(module, "printed_of", noted, raising=False)
    return offsets


def shown(lines: list[LogLine]) -> list[str]:
    return [line.text for line in lines]


def job_is(*states: JobNow | None) -> ReadJob:
    """Return a reader of a job that has these states in turn, and the last one for good."""
    left = list(states)

    async def read() -> JobNow | None:
        return left.pop(0) if len(left) > 1 else left[0]

    return read


async def followed(output: JobOutput, read_job: ReadJob, shows: Shows = Shows()) -> bytes:  # noqa: B008
    return b"".join([f async for f in follow_lines(output, lambda: True, read_job, shows)])


def data_of(name: str, written: bytes) -> list[dict[str, object]]:
    return [
        json.loads(data) for data in re.findall(b"event: %b\ndata: (.*)" % name.encode(), written)
    ]


async def test_stored_and_recent_lines_are_one_output(store: JobLogStore) -> None:
    topic = Topic()
    await put(store, 0, "a", "b", at_ms=1)
    await put(store, 0, "x", at_ms=2, rank=1)
    topic.append(printed(1, "b", "c"), 3)
    topic.append(printed(0, "of another", job="j2"), 4)
    lines = await read_lines(JobOutput(topic.recent, store, JOB))
    assert shown(lines) == ["a", "x", "b", "c"]
    assert [line.missing for line in lines] == [0] * 4
    assert shown(await read_lines(JobOutput(topic.recent, store, JOB, Selection(rank=1)))) == ["x"]
    for most in (1, 2, 3):
        last = await read_lines(JobOutput(topic.recent, store, JOB, Selection(most)))
        assert len(last) == most and last[-1].text == "c"


async def test_lines_that_are_stored_and_recent_count_once(store: JobLogStore) -> None:
    topic = Topic()
    for number in range(10):
        await put(store, number, f"{number}", at_ms=number)
    for number in (4, 5, 5, 6, 7, 8, 9):
        topic.append(printed(number, f"{number}"), number)
    for most in range(1, 11):
        last = await read_lines(JobOutput(topic.recent, store, JOB, Selection(most)))
        assert shown(last) == [f"{number}" for number in range(10)][-most:]
        assert not any(line.missing for line in last)


async def test_of_a_long_output_only_the_chunks_of_its_end_are_read(
    store: JobLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        await put(store, number, f"{number}", at_ms=number)
    read, get = [], Objects.get

    async def noted(self: Objects, name: str):  # type: ignore[no-untyped-def]
        read.append(name)
        return await get(self, name)

    monkeypatch.setattr(Objects, "get", noted)
    lines = await read_lines(JobOutput(Topic().recent, store, JOB, Selection(3)))
    assert shown(lines) == ["47", "48", "49"] and len(read) == 3
    assert [line.missing for line in lines] == [0, 0, 0]


async def test_of_many_recent_records_those_of_the_selected_lines_are_decoded(
    store: JobLogStore, decoded: list[int]
) -> None:
    topic = Topic()
    for number in range(1000):
        topic.append(printed(number // 2, f"{number}", rank=number % 2), number)

    async def read(selection: Selection) -> tuple[list[str], list[int]]:
        decoded.clear()
        lines = await read_lines(JobOutput(topic.recent, store, JOB, selection))
        assert not any(line.missing for line in lines)
        return shown(lines), sorted(decoded)

    assert await read(Selection(1)) == (["999"], [999])
    assert await read(Selection(2, rank=0)) == (["996", "998"], [996, 998])
    assert await read(Selection(2, rank=1, attempt=1, from_line=3)) == (["7", "9"], [7, 9])
    assert await read(Selection(2, rank=2)) == ([], [])
    for number in range(400):
        await put(store, number, f"{2 * number}", at_ms=2 * number)
    assert (await read(Selection(2, rank=0, attempt=1, from_line=399)))[1] == [800]


async def test_many_recent_records_are_read_in_turns_with_the_work_of_others(
    decoded: list[int],
) -> None:
    topic, turns = Topic(), []
    for number in range(1000):
        topic.append(printed(number, f"{number}"), number)
    decoded.clear()

    async def others() -> None:
        while True:
            turns.append(len(decoded))
            await asyncio.sleep(0)

    work = asyncio.ensure_future(others())
    try:
        for is_followed in (False, True):
            decoded.clear()
            turns.clear()
            output = JobOutput(topic.recent, None, JOB)
            await (followed(output, job_is(ENDED)) if is_followed else read_lines(output))
            assert len(decoded) == 1000
            assert max(b - a for a, b in zip([0, *turns], [*turns, 1000], strict=True)) <= 200
    finally:
        work.cancel()


async def test_a_follower_decodes_a_record_once_and_none_that_it_has(
    store: JobLogStore, decoded: list[int]
) -> None:
    topic = Topic()
    await put(store, 0, "a", "b")
    for number, text in enumerate("abc"):
        topic.append(printed(number, text))
    decoded.clear()
    frames = follow_lines(JobOutput(topic.recent, store, JOB), lambda: True, job_is(RUNS), Shows())
    written = b""
    while b'"c"' not in written:
        written += await anext(frames)
    assert decoded == [2]
    topic.append(printed(3, "d"))
    while b'"d"' not in written:
        written += await anext(frames)
    assert decoded == [2, 3, 3], "once as it is read, once for the follower"


async def test_lines_that_are_not_kept_are_counted(store: JobLogStore) -> None:
    await put(store, 2, "c")
    await put(store, 9, "j", "k")
    lines = await read_lines(JobOutput(Topic().recent, store, JOB))
    assert lines == [LogLine(1, 0, 2, "c", 2), LogLine(1, 0, 9, "j", 6), LogLine(1, 0, 10, "k")]
    written = await followed(JobOutput(Topic().recent, store, JOB), job_is(ENDED))
    assert [line.get("missing", 0) for line in data_of("line", written)] == [2, 6, 0]


async def test_a_worker_is_read_from_a_number_on(store: JobLogStore) -> None:
    topic = Topic()
    for first in (0, 3, 6):
        await put(store, first, *(f"{first + n}" for n in range(3)))
    topic.append(printed(9, "9", "10"))
    pages, at = [], 1
    while True:
        selection = Selection(4, rank=0, attempt=1, from_line=at)
        lines = await read_lines(JobOutput(topic.recent, store, JOB, selection))
        if not lines:
            break
        pages.append(shown(lines))
        at = lines[-1].line + 1
    assert pages == [["1", "2", "3", "4"], ["5", "6", "7", "8"], ["9", "10"]]


async def test_output_that_is_stored_whole_needs_no_topic(store: JobLogStore) -> None:
    await put(store, 0, "a", last=True)
    output = JobOutput(Topic().recent, store, JOB)
    assert not await is_stored(output, job_is(ENDED))
    await put(store, 0, "x", rank=1, last=True)
    assert await is_stored(output, job_is(ENDED))
    assert not await is_stored(output, job_is(RUNS)) and not await is_stored(output, job_is(None))
    assert await is_stored(JobOutput(Topic().recent, None, JOB), job_is(ENDED._replace(attempt=0)))


async def test_a_topic_that_is_read_too_late_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_lines, "BEHIND_S", 0.05)
    topic = Topic()
    topic.append(printed(0, "a"))
    await reach_end(topic.recent, 1)
    topic.broker.append(LANE, printed(1, "b"))
    with pytest.raises(TimeoutError):
        await reach_end(topic.recent, 1)


async def test_lines_are_followed_until_the_job_has_ended_and_its_last_lines_are_read(
    store: JobLogStore,
) -> None:
    topic = Topic()
    await put(store, 0, "stored")
    topic.append(printed(1, "a"))

    async def ends() -> JobNow:
        topic.append(printed(2, "after the end"))
        topic.append(printed(0, "of another", job="j2"))
        return ENDED

    written = await followed(JobOutput(topic.recent, store, JOB), ends)
    assert [line["text"] for line in data_of("line", written)] == ["stored", "a", "after the end"]
    assert written.endswith(b'event: end\ndata: {"reason":"output_missing","workers":[0,1]}\n\n')


async def test_ended_and_stored_output_is_followed_to_its_end_at_once(store: JobLogStore) -> None:
    await put(store, 0, "a", last=True)
    await put(store, 0, "x", rank=1, last=True)
    written = await followed(JobOutput(Topic().recent, store, JOB), job_is(ENDED))
    assert len(data_of("line", written)) == 2
    assert written.endswith(b'event: end\ndata: {"reason":"ended"}\n\n')


async def test_what_is_stored_while_it_is_followed_is_not_missed(store: JobLogStore) -> None:
    await put(store, 0, "a")
    topic, frames = Topic(), []
    async for frame in follow_lines(
        JobOutput(topic.recent, store, JOB), lambda: True, job_is(ENDED), Shows()
    ):
        if b'"a"' in frame:
            await put(store, 1, "b")
        frames.append(frame)
    assert [line["text"] for line in data_of("line", b"".join(frames))] == ["a", "b"]


async def test_without_its_store_a_stream_has_what_is_recent(
    store: JobLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(self: JobLogStore, *_: object) -> list[object]:
        raise StoreUnreachable("away")

    monkeypatch.setattr(JobLogStore, "chunks", away)
    topic = Topic()
    topic.append(printed(5, "f"))
    written = await followed(JobOutput(topic.recent, store, JOB), job_is(ENDED))
    assert data_of("line", written) == [
        {"attempt": 1, "rank": 0, "line": 5, "text": "f", "missing": 5}
    ]
    with pytest.raises(StoreUnreachable):
        await read_lines(JobOutput(topic.recent, store, JOB))


async def test_lines_are_followed_until_the_right_to_them_ends() -> None:
    topic, rights = Topic(), [True, True, False]
    topic.append(printed(0, "a"))
    output = JobOutput(topic.recent, None, JOB)
    frames = follow_lines(output, lambda: rights.pop(0), job_is(RUNS), Shows())
    assert await anext(frames) == OPENING
    assert b'"text":"a"' in await anext(frames)
    topic.append(printed(1, "b"))
    assert b'"text":"b"' in await anext(frames)
    assert await anext(frames) == b'event: end\ndata: {"reason":"key_revoked"}\n\n'


async def test_states_of_an_open_line_are_shown_where_they_are_selected() -> None:
    topic = Topic()
    topic.append(printed(0, open_line="10 %"))
    topic.append(printed(0, open_line="rank 1", rank=1))
    output = JobOutput(topic.recent, None, JOB, Selection(rank=0))
    frames = follow_lines(output, lambda: True, job_is(RUNS), Shows(open_lines=True))
    async with asyncio.timeout(5):
        written = [await anext(frames), await anext(frames)]
        assert data_of("open", b"".join(written)) == [
            {"attempt": 1, "rank": 0, "line": 0, "text": "10 %"}
        ]
        topic.append(printed(0, "100 %"))
        while b'"100 %"' not in await anext(frames):
            continue
    assert not data_of("open", await followed(JobOutput(topic.recent, None, JOB), job_is(ENDED)))


@pytest.mark.parametrize("shows_status", [False, True])
async def test_the_state_of_the_job_is_shown_where_it_is_wanted_and_when_it_changes(
    shows_status: bool,
) -> None:
    failure = {"reason": "walltime"}
    waits = JobNow("waiting", "no_capacity", 2, 2, failure=failure)
    silent = RUNS._replace(silent_nodes=("n1",))
    ended = ENDED._replace(failure=failure)
    read = job_is(RUNS, RUNS, None, silent, RUNS, waits, ended)
    output = JobOutput(Topic().recent, None, JOB, ALL)
    expected = [
        {"phase": "running", "reason": "", "attempt": 1},
        {"phase": "running", "reason": "", "attempt": 1, "silent_nodes": ["n1"]},
        {"phase": "running", "reason": "", "attempt": 1},
        {"phase": "waiting", "reason": "no_capacity", "attempt": 2, "failure": failure},
        {"phase": "succeeded", "reason": "", "attempt": 1},
    ]
    written = await followed(output, read, Shows(status=shows_status))
    assert data_of("status", written) == (expected if shows_status else [])
