"""100,000 malformed records in one tenant's topic keep no job of another tenant waiting."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from services.gateway.kafka.ingress import MAX_RECORDS
from services.gateway.settings import GatewaySettings
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.identity import derive_command_id
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.broker_clients import log_of, read_to_end
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import LANES, fill_access, start_broker, start_gateway

pytestmark = [pytest.mark.process, pytest.mark.parts]

FLOOD = 100_000
JOBS = 20
MAIN = TP("commands", 1)
"""Lane of the pool `main`, to which the rejections of the flood go as well."""
NO_POSTGRES = "postgresql://berth@127.0.0.1:1/berth"
BURST: int = GatewaySettings.model_fields["tenant_burst"].default


async def flood(connection: Connection) -> None:
    producer = AIOKafkaProducer(**connection.aiokafka(), linger_ms=20, max_batch_size=256 * 1024)
    await producer.start()
    sent = [
        await producer.send("submissions.ada", b"{ not a job", partition=number % LANES)
        for number in range(FLOOD)
    ]
    await asyncio.gather(*sent)
    await producer.stop()


async def submit(log: KafkaLog, number: int) -> str:
    data = json.dumps({"name": f"good-{number}", "pool": "main"}).encode()
    body = cloudevents.encode(id=f"g{number}", source="/bob", type="job.submit.v1", data=data)
    offset = await log.append(TP("submissions.bob", 0), body)
    return derive_command_id("submissions.bob", 0, offset)


async def test_a_flood_delays_the_jobs_of_another_tenant_by_a_burst_at_most(tmp_path: Path) -> None:
    broker, kafka = await asyncio.to_thread(start_broker, tmp_path / "broker")
    connection = Connection(kafka, idempotent=False)
    log = log_of(connection)
    await log.start()
    await flood(connection)
    await fill_access(kafka)
    gateway, _ = await asyncio.to_thread(start_gateway, tmp_path, kafka, NO_POSTGRES)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while await log.end(MAIN) < BURST:
                await asyncio.sleep(0.1)
        ahead: list[int] = []
        for number in range(JOBS):
            before = await log.end(MAIN)
            id = await submit(log, number)
            ahead.append(await position_of(log, id, before) - before)
        # A poll of the flood may be under way, and the bucket fills meanwhile.
        assert max(ahead) <= BURST + 2 * MAX_RECORDS
        assert await log.end(MAIN) < FLOOD, "the flood is still there: it was not just served first"
    finally:
        gateway.stop()
        broker.stop()
        await log.stop()


async def position_of(log: KafkaLog, id: str, offset: int) -> int:
    """Return the offset of a command in its lane, once it is there."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for entry in await read_to_end(log, MAIN, offset):
                if id.encode() in (entry.value or b""):
                    return entry.offset
                offset = entry.offset + 1
            await asyncio.sleep(0.05)
