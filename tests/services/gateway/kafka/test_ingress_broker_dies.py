"""A broker dies by SIGKILL and comes back: the ingress reads on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra.broker import kafka, topics
from infra.machine.process import free_ports, is_open, spawn
from services.gateway.kafka.ingress import Ingress
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.topics import submissions
from shared.http.rate import Rate
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.process.connection import Connection
from shared.telemetry.metrics import Metrics
from tests.patience import PATIENCE_S

pytestmark = [
    pytest.mark.process,
    pytest.mark.parts,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]
LANES = 2


class Counting(Ingress):
    """Reads and commits as the ingress does; what it reads goes nowhere."""

    async def _forward(self, records: Any) -> None:
        self.consumed += len(records)


async def put(connection: Connection) -> None:
    """One record in each lane, as a tenant with patience sends it."""
    log = KafkaLog(connection)
    await log.start()
    for lane in range(LANES):
        while True:
            try:
                await log.append(TP("submissions.ada", lane), b"x")
                break
            except OutcomeUnknown:
                await asyncio.sleep(0.2)
    await log.stop()


async def until(ingress: Ingress, reading: asyncio.Future[None], taken: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while ingress.consumed < taken:
            assert not reading.done(), reading
            await asyncio.sleep(0.1)


async def test_the_ingress_reads_on_after_the_broker_died(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    broker = await asyncio.to_thread(kafka.start, tmp_path, port)
    connection = kafka.root(tmp_path)
    await asyncio.to_thread(topics.create, connection, LANES, True, [submissions("ada")])
    access: Any = SimpleNamespace(view=SimpleNamespace(tenants={"ada"}))
    nothing: Any = None
    telemetry: Any = SimpleNamespace(metrics=Metrics("gateway"))
    ingress = Counting(
        connection, "gateway-0", access, nothing, telemetry, nothing, Rate(1e6, 1000)
    )
    reading = asyncio.ensure_future(ingress.run())
    try:
        for death in range(3):
            await put(connection)
            await until(ingress, reading, LANES * (death + 1))
            broker.kill()
            await asyncio.sleep(1.0)
            broker = spawn("kafka", kafka.command(tmp_path), tmp_path / "again.log")
            await asyncio.to_thread(broker.wait_ready, lambda: is_open(port), PATIENCE_S)
        await put(connection)
        await until(ingress, reading, LANES * 4)
    finally:
        reading.cancel()
        await asyncio.wait({reading})
        broker.kill()
