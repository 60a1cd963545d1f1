"""The source reads all ledgers in batches that continue at their cursors."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.nodes import NodeCordoned
from shared.contracts.topics import LEDGERS
from shared.ledger.reader import Cursor
from shared.projections.ledger_events import LedgerBatch
from shared.projections.source import LedgerPartition, Source, ledger_partitions, prefetch


def three_records() -> MemoryBroker:
    broker = MemoryBroker()
    pen = LedgerWriter(broker, "placement")
    for name in ("n1", "n2", "n3"):
        pen.write([NodeCordoned(node_id=name)])
    return broker


async def poll_all(
    source: Source, limits: dict[LedgerPartition, Cursor] | None = None
) -> list[LedgerBatch]:
    batches: list[LedgerBatch] = []
    for _ in range(10):
        batches += await source.poll(0.0, 1, limits)
    return batches


def subjects(batches: list[LedgerBatch]) -> list[str]:
    return [event.subject for batch in batches for event in batch.events]


def test_access_has_one_partition_and_the_others_one_per_lane() -> None:
    partitions = ledger_partitions(3)
    assert [p for p in partitions if p[0] == "access"] == [("access", 0)]
    assert [p for p in partitions if p[0] == "placement"] == [("placement", n) for n in range(3)]
    assert {name for name, _ in partitions} == set(LEDGERS)


async def test_each_batch_begins_where_the_one_before_ended() -> None:
    source = Source(MemoryLog(three_records()), 1)
    await source.start()
    batches = await poll_all(source)
    await source.stop()
    assert subjects(batches) == ["n1", "n2", "n3"]
    assert batches[0].before == Cursor()
    for first, second in zip(batches, batches[1:], strict=False):
        assert first.after == second.before
    assert batches[-1].after.seq == 3 and source.caught_up


async def test_reading_continues_at_a_stored_cursor() -> None:
    broker = three_records()
    source = Source(MemoryLog(broker), 1)
    await source.start()
    first = (await poll_all(source))[0]
    await source.stop()
    resumed = Source(MemoryLog(broker), 1, {("placement", 0): first.after})
    await resumed.start()
    assert subjects(await poll_all(resumed)) == ["n2", "n3"]
    await resumed.stop()


async def test_records_beyond_a_limit_wait_for_a_later_poll() -> None:
    source = Source(MemoryLog(three_records()), 1)
    await source.start()
    limits = {("placement", 0): Cursor(seq=2)}
    assert subjects(await poll_all(source, limits)) == ["n1", "n2"]
    assert source.has_reached(limits) and not source.has_reached({("placement", 0): Cursor(seq=3)})
    assert subjects(await poll_all(source)) == ["n3"]
    await source.stop()


async def test_the_next_poll_begins_while_the_caller_works() -> None:
    started: list[int] = []

    async def poll() -> int:
        started.append(len(started))
        return started[-1]

    async with aclosing(prefetch(poll)) as results:
        async for result in results:
            await asyncio.sleep(0)
            assert started[-1] == result + 1
            if result == 2:
                break


async def test_an_error_of_a_poll_reaches_the_caller() -> None:
    async def poll() -> int:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        await anext(prefetch(poll))
