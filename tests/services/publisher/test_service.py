"""The publisher as a process on the embedded broker: killed in the middle, nothing is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.machine.process import Running, spawn
from services.publisher.shipper import KafkaShipper, OutgoingRecord
from shared.bus.ids import new_id
from shared.bus.logs.log import Entry
from shared.contracts.topics import tenant_events
from shared.ledger.partition import TP
from shared.ledger.record import Record, encode
from shared.process.connection import Connection
from tests.broker_clients import log_of
from tests.embedded_broker import embedded_broker
from tests.patience import PATIENCE_S
from tests.services.publisher.ledgers import _packed, accepted, admitted, succeeded

pytestmark = pytest.mark.process

RECORDS, EVENTS = 400, 3


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[str]:
    with embedded_broker(tmp_path, 1, tenant_events("ada")) as address:
        yield address


def publisher(kafka: str, tmp_path: Path) -> Running:
    env = {
        "PATH": os.environ["PATH"],
        "BERTH_KAFKA": kafka,
        "BERTH_DATA": str(tmp_path),
        "BERTH_PARTITIONS": "1",
        "BERTH_IDEMPOTENT": "0",
        "BERTH_MAX_RECORDS": "20",
    }
    command = [sys.executable, "-m", "services.publisher"]
    return spawn("publisher", command, tmp_path / "publisher.log", env)


async def fill(kafka: str, records: int) -> None:
    """One record per append, as a ledger is written."""
    bus = KafkaShipper(Connection(kafka, idempotent=False))
    await bus.start()
    prev = ""
    for n in range(records):
        events = (accepted(f"c{n}"), admitted(f"j{n}"), succeeded(f"j{n}"))
        record = Record(new_id(), n + 1, prev, "w", 1000 + n, {}, _packed(events))
        prev = record.id
        await bus.ship({TP("admission", 0): [OutgoingRecord(b"", encode(record))]})
    await bus.stop()


async def read(kafka: str, topic: str) -> list[Entry]:
    bus = log_of(Connection(kafka, idempotent=False))
    feed = await bus.feed({TP(topic, 0): 0}, lossy=True)
    entries: list[Entry] = []
    while polled := await feed.poll(1.0, 5000):
        entries.extend(polled[TP(topic, 0)])
    await feed.close()
    return entries


async def test_kills_lose_no_event_and_repeat_only_the_same_bytes(
    kafka: str, tmp_path: Path
) -> None:
    await fill(kafka, RECORDS)
    for _ in range(2):
        begun = await published(kafka)
        running = publisher(kafka, tmp_path)
        async with asyncio.timeout(PATIENCE_S):
            while await published(kafka) <= begun:
                if begun and len(await read(kafka, "events")) >= EVENTS * RECORDS:
                    break
                await asyncio.sleep(0.01)
        os.kill(running.pid, signal.SIGKILL)
        running.stop()
    running = publisher(kafka, tmp_path)
    try:
        for topic in ("events", "events.ada"):
            await complete(kafka, topic)
    finally:
        running.stop()


async def published(kafka: str) -> int:
    """Return how many events are published at least: the embedded broker names too low an end."""
    log = log_of(Connection(kafka, idempotent=False))
    await log.start()
    try:
        return await log.end(TP("events", 0))
    finally:
        await log.stop()


async def complete(kafka: str, topic: str) -> None:
    expected = {f"admission/0/{seq}/{i}" for seq in range(1, RECORDS + 1) for i in range(EVENTS)}
    async with asyncio.timeout(PATIENCE_S):
        while True:
            values: dict[str, set[bytes]] = {}
            for entry in await read(kafka, topic):
                value = entry.value or b""
                values.setdefault(json.loads(value)["id"], set()).add(value)
            if set(values) == expected:
                break
    assert all(len(same) == 1 for same in values.values())
