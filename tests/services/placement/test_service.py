"""The real program on the embedded broker: a job's life across a kill, and a node that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import pytest

from infra import tansu, topics
from infra.process import free_ports
from shared.bus import cloudevents
from shared.bus.clock import now_ms
from shared.bus.decider import Fact
from shared.bus.kafka import KafkaLog
from shared.bus.log import TP
from shared.bus.record import Record, encode, new_id, pack
from shared.bus.tail import LedgerTail
from shared.contracts.access import PoolConfigured
from shared.contracts.base import Event
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import JobPlaced, JobStarted, JobSucceeded
from shared.contracts.reports import ExecutorReported, Heartbeats, Report
from shared.testing.ledgers import stored
from tests.services.placement.core.lane import exited, job, ready, registered

PATIENCE_S = 40.0
POOL = PoolConfigured(partition=0, pool="p", lease_s=3.0)
E = TypeVar("E", bound=Event)


class Stage:
    """A broker, inputs written by hand, and the program under test."""

    def __init__(self, folder: Path, kafka: str) -> None:
        self.folder = folder
        self.kafka = kafka
        self.facts: list[Fact] = []
        self._log = KafkaLog(kafka, idempotent=False)
        self._tail = LedgerTail(KafkaLog(kafka, idempotent=False), {"placement": [0]})
        self._process: subprocess.Popen[bytes] | None = None

    async def open(self) -> None:
        await self._tail.start()
        await self.write("access", POOL)

    def start(self) -> subprocess.Popen[bytes]:
        environment = {
            "PATH": os.environ["PATH"],
            "BERTH_KAFKA": self.kafka,
            "BERTH_PARTITIONS": "1",
            "BERTH_IDEMPOTENT": "0",
            "BERTH_DATA": str(self.folder),
            "BERTH_INSTANCE": "placement-1",
        }
        program = [sys.executable, "-m", "services.placement"]
        self._process = subprocess.Popen(program, env=environment, stderr=subprocess.DEVNULL)
        return self._process

    async def write(self, ledger: str, event: Event) -> None:
        """The first and only record of a ledger."""
        record = Record(new_id(), 1, "", "hand", now_ms(), {}, pack([stored(event)]))
        await self._log.append(TP(ledger, 0), encode(record))

    async def report(self, *reports: Report) -> None:
        await self.post("reports", ExecutorReported(executor_id="e1", reports=reports))

    async def post(self, topic: str, message: ExecutorReported | Heartbeats) -> None:
        data = message.model_dump_json().encode()
        value = cloudevents.encode(
            id=new_id(), source="/test", type=message.TYPE, data=data, at_ms=now_ms()
        )
        await self._log.append(TP(topic, 0), value)

    async def said(self, kind: type[E]) -> tuple[Fact, E]:
        """The first fact of this kind."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for fact in self.facts:
                    if isinstance(fact.event, kind):
                        return fact, fact.event
                for accepted in await self._tail.poll(0.2):
                    self.facts += accepted.facts()

    async def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        await self._tail.stop()
        await self._log.stop()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    (port,) = free_ports(1)
    broker = tansu.start(tmp_path / "broker", port)
    try:
        topics.create(f"127.0.0.1:{port}", 1, durable=False)
        made = Stage(tmp_path, f"127.0.0.1:{port}")
        await made.open()
        try:
            yield made
        finally:
            await made.close()
    finally:
        broker.stop()


@pytest.mark.stack
async def test_a_job_lives_through_a_kill_of_placement(stage: Stage) -> None:
    program = stage.start()
    await stage.report(registered("n1"))
    await stage.said(NodeJoined)
    await stage.write("admission", job("a"))
    fact, placed = await stage.said(JobPlaced)
    program.send_signal(signal.SIGKILL)
    program.wait()

    program = stage.start()
    lease = f"{fact.place}/{placed.allocations[0].rank}"
    await stage.report(ready(lease, "a"))
    await stage.said(JobStarted)
    await stage.report(exited(lease, "a"))
    await stage.said(JobSucceeded)
    for _ in range(12):
        await stage.post("heartbeats", Heartbeats(executor_id="e1", at=1, nodes={"n1": "i1"}))
        await asyncio.sleep(0.3)
    assert not any(isinstance(each.event, NodeLost) for each in stage.facts)
    _, lost = await stage.said(NodeLost)
    assert lost.node_id == "n1" and lost.silent_s > 3
    program.terminate()
    assert program.wait(10) == 0
