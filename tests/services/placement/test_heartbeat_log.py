"""Reading `heartbeats` up to markers: on the log in memory, the embedded broker and Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.placement import heartbeat_log
from services.placement.heartbeat_log import (
    HeartbeatLog,
    LogBroken,
    NotRead,
    decoded_heartbeats,
    decoded_marker,
)
from shared.bus.clock import now_ms
from shared.bus.logs.log import Entry, Log
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.codec import encode
from shared.contracts.reports import Alive, Heartbeats, HeartbeatsRead
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from tests.harness.flaky_log import FlakyLog
from tests.shared.bus.conftest import Broker, broker, kafka_broker, tansu_broker

__all__ = ["broker", "kafka_broker", "tansu_broker"]

BEAT = Heartbeats(executor_id="e", nodes={"n1": Alive(incarnation="i", sent_boot_ms=1)})


def record(message: Heartbeats | HeartbeatsRead, type_: str = "") -> bytes:
    return cloudevents.encode(
        id="1", source="/test", type=type_ or message.TYPE, data=encode(message), at_ms=now_ms()
    )


class Topic:
    """The heartbeats of one lane: a reader, and another client that writes."""

    def __init__(self, broker: Broker) -> None:
        self.tp = TP("heartbeats", next(broker.lanes))
        self.writer = broker.log()
        self.broker = broker
        self.reader = self.new_reader()

    def new_reader(self, log: Log | None = None) -> HeartbeatLog:
        return HeartbeatLog(log or self.broker.log(), self.tp.partition)

    async def beat(self, count: int) -> None:
        for _ in range(count):
            await self.writer.append(self.tp, record(BEAT))


@pytest.fixture
async def topic(broker: Broker) -> AsyncIterator[Topic]:
    made = Topic(broker)
    await made.writer.start()
    yield made
    await made.reader.stop()
    await made.writer.stop()


async def read_to_end(reader: HeartbeatLog) -> list[Entry]:
    return [entry for entries in [e async for e in reader.read_to_end()] for entry in entries]


async def test_a_marker_is_read_after_everything_that_was_appended_before(topic: Topic) -> None:
    await topic.beat(2)
    await topic.reader.start(None)
    for count in (1, 30, 0):
        await topic.beat(count)
        entries = await read_to_end(topic.reader)
        beats = [e for e in entries if decoded_heartbeats(e.value) == BEAT]
        assert len(beats) >= count
        assert any(decoded_marker(entry.value) for entry in entries)
        assert topic.reader.position == entries[-1].offset + 1


async def test_readers_pass_over_the_markers_of_others_while_heartbeats_arrive(
    topic: Topic,
) -> None:
    rival = topic.new_reader()
    await topic.reader.start(None)
    await rival.start(None)
    beating = asyncio.create_task(topic.beat(20))
    for _ in range(5):
        await read_to_end(topic.reader)
        await read_to_end(rival)
    await beating
    await rival.stop()


async def test_a_reader_begins_at_a_given_offset(topic: Topic) -> None:
    await topic.beat(5)
    first = topic.new_reader()
    await first.start(0)
    entries = await read_to_end(first)
    await first.stop()
    await topic.reader.start(entries[3].offset)
    again = await read_to_end(topic.reader)
    assert again[0].offset == entries[3].offset


async def test_an_offset_that_the_log_does_not_reach_is_a_break(topic: Topic) -> None:
    await topic.beat(1)
    await topic.reader.start(1_000)
    with pytest.raises(LogBroken):
        await topic.reader.poll()
        await read_to_end(topic.reader)
    await topic.reader.start_anew()
    assert await read_to_end(topic.reader)


async def test_a_gap_and_a_new_record_below_the_position_are_breaks() -> None:
    memory = MemoryBroker()
    tp = TP("heartbeats", 0)
    memory.append(tp, b"a")
    reader = HeartbeatLog(MemoryLog(memory), 0)
    await reader.start(0)
    assert len(await reader.poll(0)) == 1
    memory.entries(tp).append(Entry(5, None, b"b"))
    with pytest.raises(LogBroken, match="5 follows 0"):
        await reader.poll(0)
    reader.position = 9
    with pytest.raises(LogBroken, match="new record at 2, 9 is next"):
        await read_to_end(reader)


async def test_a_marker_that_is_not_acknowledged_or_not_read_proves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heartbeat_log, "MARKER_WAIT_S", 0.0)
    log = FlakyLog(MemoryLog(MemoryBroker()))
    reader = HeartbeatLog(log, 0)
    await reader.start(0)
    log.accidents.append("lost_ack")
    with pytest.raises(NotRead, match="lost_ack"):
        await read_to_end(reader)
    with pytest.raises(NotRead, match="not read"):
        await read_to_end(reader)


def test_other_records_are_passed_over() -> None:
    marker = HeartbeatsRead(writer="w", n=1)
    assert decoded_marker(record(marker)) == marker
    assert decoded_heartbeats(record(BEAT)) == BEAT
    for value in (None, b"", b"{}", record(BEAT, "other.v1")):
        assert decoded_heartbeats(value) is None and decoded_marker(value) is None
    assert decoded_heartbeats(record(marker)) is None and decoded_marker(record(BEAT)) is None


def test_heartbeats_of_an_older_executor_are_read() -> None:
    old = cloudevents.encode(
        id="1",
        source="/test",
        type="nodes.alive.v1",
        data=b'{"executor_id": "e", "at": 5, "nodes": {"n1": "i"}}',
        at_ms=now_ms(),
    )
    heartbeats = decoded_heartbeats(old)
    assert heartbeats is not None and heartbeats.nodes == {"n1": Alive(incarnation="i")}
