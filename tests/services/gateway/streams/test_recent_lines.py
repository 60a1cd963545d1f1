"""The topic is read once; a tenant's flood costs neither lines nor time of the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.gateway.streams import recent_lines as recent_module
from services.gateway.streams.recent_lines import OpenLine, RecentLines
from shared.bus.logs.log import Entry
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.job_logs.chunk import JobKey, Worker
from shared.job_logs.log_store import JobLogStore, Position
from shared.job_logs.record import printed_of
from shared.ledger.partition import TP
from tests.patience import PATIENCE_S
from tests.shared.job_logs.printing import printed

LANE = TP("logs", 1)
JOB, OF_BOB = JobKey(1, "ada", "j1"), JobKey(1, "bob", "b")


def texts(recent: RecentLines, job: JobKey = JOB, after: int = -1) -> list[str]:
    records = (printed_of(held.entry) for held in recent.records(job, after))
    return [text for record in records if record is not None for text in record.lines]


@asynccontextmanager
async def reading(broker: MemoryBroker, recent: RecentLines) -> AsyncIterator[RecentLines]:
    """Yield once all is read that the lane has now."""
    work = asyncio.ensure_future(recent.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while recent.positions.get(1, -1) < len(broker.entries(LANE)):
                await asyncio.sleep(0)
        yield recent
    finally:
        work.cancel()


async def test_records_are_kept_by_job_and_wake_those_that_follow_it() -> None:
    broker = MemoryBroker()
    broker.append(LANE, printed(0, "a"))
    broker.append(LANE, printed(0, "other", job="j12"))
    broker.append(LANE, b"\xff j1")
    async with reading(broker, RecentLines(lambda: MemoryLog(broker), 2, None)) as recent:
        assert texts(recent) == ["a"] and texts(recent, JobKey(0, "ada", "j1")) == []
        with recent.watched(JOB) as mine, recent.watched(OF_BOB) as of_bob:
            broker.append(LANE, printed(1, "b"))
            async with asyncio.timeout(PATIENCE_S):
                await mine.wait()
            assert not of_bob.is_set()
        assert texts(recent, after=0) == ["b"]


async def test_of_a_long_output_what_is_behind_an_offset_is_looked_at_alone() -> None:
    recent, read = RecentLines(lambda: MemoryLog(MemoryBroker()), 2, None), []
    for number in range(1000):
        recent.take(1, Entry(number, None, printed(number, f"{number}")))

    class Noted(recent_module.Held):
        @property
        def offset(self) -> int:
            read.append(self[0])
            return self[0]

    recent._held[JOB] = type(recent._held[JOB])(Noted(*held) for held in recent._held[JOB])
    assert len(recent.records(JOB, after=997)) == 2
    assert read == [999, 998, 997]


async def test_what_is_stored_is_not_read_again(tmp_path: Path) -> None:
    broker, store = MemoryBroker(), JobLogStore(str(tmp_path), writes=True)
    for number in range(5):
        broker.append(LANE, printed(number, f"{number}"))
    await store.put_position(1, Position(3, 0))
    async with reading(broker, RecentLines(lambda: MemoryLog(broker), 2, store)) as recent:
        assert texts(recent) == ["3", "4"]
    await store.put_position(1, Position(9, 0))
    async with reading(broker, RecentLines(lambda: MemoryLog(broker), 2, store)) as recent:
        assert len(texts(recent)) == 5, "the position of another topic"


async def test_a_flood_of_one_tenant_displaces_its_own_lines_alone() -> None:
    recent = RecentLines(lambda: MemoryLog(MemoryBroker()), 2, None, most_bytes=40_000)
    recent.take(1, Entry(0, None, printed(0, "of bob", job="b", tenant="bob")))
    for number in range(1000):
        recent.take(1, Entry(1 + number, None, printed(number, "x" * 100, job=f"j{number % 9}")))
    assert texts(recent, OF_BOB) == ["of bob"]
    kept = recent.records(JOB)
    assert kept and kept[-1].offset > 990 and kept[0].offset > 900
    assert recent._size_bytes <= 40_000


async def test_records_go_when_they_are_stored_for_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    recent = RecentLines(lambda: MemoryLog(MemoryBroker()), 2, None)
    recent.take(1, Entry(0, None, printed(0, "a")))
    recent._drop(recent.records(JOB)[0].read_s + recent_module.KEPT_S)
    assert texts(recent) == ["a"]
    recent._drop(recent.records(JOB)[0].read_s + recent_module.KEPT_S + 1)
    assert not recent.records(JOB) and recent._size_bytes == 0 and not recent._tenants


async def test_of_an_open_line_the_newest_state_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    recent = RecentLines(lambda: MemoryLog(MemoryBroker()), 2, None)
    for state in ("10 %", "20 %"):
        recent.take(1, Entry(0, None, printed(3, open_line=state)))
    recent.take(1, Entry(0, None, printed(0, open_line="half", rank=1)))
    assert recent.open_lines(JOB) == {
        Worker(1, 0): OpenLine(3, "20 %"),
        Worker(1, 1): OpenLine(0, "half"),
    }
    assert not recent.records(JOB), "states are no lines"
    recent.take(1, Entry(0, None, printed(3, "100 %")))
    assert list(recent.open_lines(JOB)) == [Worker(1, 1)]
    monkeypatch.setattr(recent_module, "MOST_OPEN", 1)
    recent.take(1, Entry(0, None, printed(0, open_line="new", job="j2")))
    assert not recent.open_lines(JOB) and recent.open_lines(JobKey(1, "ada", "j2"))
    recent.take(1, Entry(0, None, printed(0, job="j2", is_last=True)))
    assert not recent._open and recent._open_count == 0
