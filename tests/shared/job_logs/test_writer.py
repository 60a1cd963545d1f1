"""Output is stored once, whatever kills its writer, within the bound of its job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from shared.bus.failpoints import Failpoint, Failpoints
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.job_logs import writer as writer_module
from shared.job_logs.buffers import ChunkPace
from shared.job_logs.chunk import JobKey, Worker
from shared.job_logs.log_store import JobLogStore, Position
from shared.job_logs.writer import JobLogWriter
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.objects import objects
from shared.objects.objects import StoreFull, StoreUnreachable, counted_bytes
from tests.patience import PATIENCE_S
from tests.shared.job_logs.printing import printed

LANE = TP("logs", 0)
JOB = JobKey(0, "ada", "j1")
PLACES: tuple[Failpoint, ...] = ("before_chunk", "after_chunk", "after_position")
EACH_RECORD = ChunkPace(chunk_bytes=1)


class Died(BaseException):
    """Stands for the end of the process."""


class Dying(Failpoints):
    def die(self) -> None:
        raise Died


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "POSITION_S", 0.0)
    monkeypatch.setattr(writer_module, "POLL_S", 0.01)
    monkeypatch.setattr(writer_module, "MAX_RECORDS", 2)


@pytest.fixture
def store(tmp_path: Path) -> JobLogStore:
    return JobLogStore(str(tmp_path / "output"), writes=True)


def writer_of(
    broker: MemoryBroker, store: JobLogStore, pace: ChunkPace = EACH_RECORD, most: int = 2**30
) -> JobLogWriter:
    return JobLogWriter(lambda: MemoryLog(broker), store, 1, lambda lane: most, pace)


async def write(writer: JobLogWriter, is_done: Callable[[], asyncio.Future[bool]]) -> None:
    """Let the writer work until something is done; what it raises is raised."""
    session = asyncio.ensure_future(writer.session())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await is_done():
                if session.done():
                    session.result()
                await asyncio.sleep(0)
    finally:
        session.cancel()
        with suppress(asyncio.CancelledError, Died):
            await session


async def write_all(broker: MemoryBroker, store: JobLogStore, writer: JobLogWriter) -> None:
    async def is_stored() -> bool:
        return (await store.position(0)).next == len(broker.entries(LANE))

    await write(writer, lambda: asyncio.ensure_future(is_stored()))


async def texts(store: JobLogStore, job: JobKey = JOB) -> list[str]:
    """Return all stored lines as they are, so that a repeated one shows."""
    chunks = await store.chunks(job)
    return [text for c in chunks for run in await store.runs(job, c) for text in run.lines]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_a_death_at_any_place_loses_no_line_and_repeats_none(
    store: JobLogStore, place: Failpoint, count: int
) -> None:
    broker = MemoryBroker()
    for number in range(8):
        broker.append(LANE, printed(number // 2, f"{number}", rank=number % 2), timestamp=number)
    deaths = 0
    while True:
        armed = Dying(f"{place}:{count}") if not deaths else Failpoints()
        with patch.object(writer_module, "FAILPOINTS", armed):
            try:
                await write_all(broker, store, writer_of(broker, store))
                break
            except Died:
                deaths += 1
    assert deaths == 1
    assert await texts(store) == ["0", "2", "4", "6", "1", "3", "5", "7"]


async def test_what_waits_for_its_chunk_is_read_again_by_the_next_writer(
    store: JobLogStore,
) -> None:
    broker, late = MemoryBroker(), ChunkPace()
    broker.append(LANE, printed(0, "a", job="j2"), timestamp=1)
    broker.append(LANE, printed(0, "b", is_last=True), timestamp=2)
    broker.append(LANE, printed(1, "c", job="j2"), timestamp=3)

    async def has_ended() -> bool:
        return bool(await texts(store))

    await write(writer_of(broker, store, late), lambda: asyncio.ensure_future(has_ended()))
    assert await texts(store) == ["b"] and await store.position(0) == Position(0, 0)
    await write_all(broker, store, writer_of(broker, store))
    assert (await texts(store), await texts(store, JobKey(0, "ada", "j2"))) == (["b"], ["a", "c"])
    assert [chunk.is_last for chunk in await store.chunks(JOB)] == [True]


async def test_another_topic_of_the_same_name_is_read_from_its_begin(store: JobLogStore) -> None:
    first, second = MemoryBroker(), MemoryBroker()
    for number in range(3):
        first.append(LANE, printed(number, f"{number}"), timestamp=number)
        second.append(LANE, printed(number, "other", attempt=2), timestamp=100 + number)
    await write_all(first, store, writer_of(first, store))
    second.append(LANE, printed(3, "other", attempt=2), timestamp=104)
    await write_all(second, store, writer_of(second, store))
    assert await texts(store) == ["0", "1", "2", *["other"] * 4]


async def test_a_rival_writer_ends_the_session(store: JobLogStore) -> None:
    broker = MemoryBroker()
    broker.append(LANE, printed(0, "a"), timestamp=1)
    writer = writer_of(broker, store)
    await write_all(broker, store, writer)
    session = asyncio.ensure_future(writer.session())
    await asyncio.sleep(0.1)
    await store.put_position(0, Position(0, 5))
    broker.append(LANE, printed(1, "b"), timestamp=2)
    with pytest.raises(OutcomeUnknown, match="another process"):
        async with asyncio.timeout(PATIENCE_S):
            await session


async def test_the_first_and_the_newest_lines_of_a_large_job_stay(store: JobLogStore) -> None:
    broker = MemoryBroker()
    for number in range(40):
        broker.append(LANE, printed(number, f"{number}"), timestamp=number)
    broker.append(LANE, printed(0, "of bob", job="j2", tenant="bob"), timestamp=50)
    most = 8 * counted_bytes(1)
    await write_all(broker, store, writer_of(broker, store, most=most))
    lines = list(map(int, await texts(store)))
    assert lines[:2] == [0, 1] and lines[-4:] == [36, 37, 38, 39]
    assert len(await store.chunks(JOB)) <= 8
    assert await texts(store, JobKey(0, "bob", "j2")) == ["of bob"]


async def test_many_attempts_have_the_bound_of_their_job_and_are_listed_now_and_then(
    store: JobLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, listed, chunks_of = MemoryBroker(), [], JobLogStore.chunks

    async def noted(self: JobLogStore, job: JobKey, worker: Worker | None = None):  # type: ignore[no-untyped-def]
        listed.append(job)
        return await chunks_of(self, job, worker)

    for attempt in range(1, 101):
        value = printed(0, f"{attempt}", attempt=attempt, is_last=True)
        broker.append(LANE, value, timestamp=attempt)
    monkeypatch.setattr(JobLogStore, "chunks", noted)
    await write_all(broker, store, writer_of(broker, store, most=32 * counted_bytes(1)))
    assert len(listed) <= 1 + 100 / 4, "each time an eighth of the bound goes"
    lines = list(map(int, await texts(store)))
    assert lines[:9] == [*range(1, 9), lines[8]] and lines[8:] == [*range(lines[8], 101)]
    assert 28 <= len(await store.chunks(JOB)) <= 32


async def test_a_store_that_is_full_or_away_is_not_read_for(
    store: JobLogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = MemoryBroker()
    broker.append(LANE, printed(0, "a"), timestamp=1)
    monkeypatch.setattr(objects, "LEAST_FREE_SHARE", 1.0)
    monkeypatch.setattr(objects, "LEAST_FREE_BYTES", 2**62)
    with pytest.raises(StoreFull):
        await writer_of(broker, store).session()
    (tmp_path / "file").write_text("")
    away = JobLogStore(str(tmp_path / "file" / "below"), writes=True)
    with pytest.raises(StoreUnreachable):
        await writer_of(broker, away).session()
    monkeypatch.undo()
    await write_all(broker, store, writer_of(broker, store))
    assert await texts(store) == ["a"]


async def test_the_writer_tries_again_and_says_since_when_it_is_behind(
    store: JobLogStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer_module, "RETRY_S", 0.0)
    broker, failures = MemoryBroker(), [StoreUnreachable("away"), StoreUnreachable("away")]
    broker.append(LANE, printed(0, "a"), timestamp=1)
    check = JobLogStore.check_writable

    async def failing(self: JobLogStore) -> None:
        if failures:
            raise failures.pop()
        await check(self)

    monkeypatch.setattr(JobLogStore, "check_writable", failing)
    writer = writer_of(broker, store)
    monkeypatch.setattr(writer, "_done_s", writer._done_s - 1000)
    assert writer.behind_s() >= 1000
    work = asyncio.ensure_future(writer.run())
    async with asyncio.timeout(PATIENCE_S):
        while writer.behind_s() >= 1000:
            await asyncio.sleep(0.01)
    work.cancel()
    assert [r.message for r in caplog.records if "not stored: away" in r.message] == [
        f"output of jobs is not stored: away; see {writer_module.RUNBOOK}"
    ]
    assert await store.chunks(JOB, Worker(1, 0))
