"""The real program on the embedded broker: killed, started again, and stopped in good order."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.bus.ids import new_id
from shared.bus.logs.tail import TopicTail
from shared.contracts.base import Event
from shared.contracts.nodes import NodeJoined
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import (
    ExecutorReported,
    NodeLeaving,
    NodeRegistered,
    Report,
    WorkerExited,
    WorkerReady,
    WorkerStopped,
)
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from shared.ledger.record import Record, encode, pack
from shared.ledger.stored_event import stored_event
from shared.process.connection import Connection
from tests.broker_clients import log_of
from tests.embedded_broker import embedded_broker
from tests.patience import PATIENCE_S
from tests.services.executor.facts import a_spec, enqueued, placed, started

pytestmark = pytest.mark.process


POOL = PoolConfigured(partition=0, pool="demo")
INVENTORY = {
    "pool": "demo",
    "nodes": [{"id": "n1", "gpu_type": "a100", "gpus": 2, "cpus": 2, "mem_gib": 4}],
}


class Stage:
    """A broker, a placement written by hand, and the program under test."""

    def __init__(self, folder: Path, kafka: str) -> None:
        self.folder = folder
        self.kafka = kafka
        self.reports: list[Report] = []
        self._log = log_of(Connection(kafka, idempotent=False))
        self._tail = TopicTail(log_of(Connection(kafka, idempotent=False)))
        self._chain: dict[str, tuple[int, str]] = {}
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "nodes.json").write_text(json.dumps(INVENTORY))

    async def open(self) -> None:
        await self._tail.start({TP("reports", 0): 0})
        await self.write("access", POOL)

    def start(self) -> subprocess.Popen[bytes]:
        environment = {
            "PATH": os.environ["PATH"],
            "BERTH_KAFKA": self.kafka,
            "BERTH_IDEMPOTENT": "0",
            "BERTH_DATA": str(self.folder),
            "BERTH_EXECUTOR_ID": "e1",
            "BERTH_NODES": str(self.folder / "nodes.json"),
        }
        program = [sys.executable, "-m", "services.executor"]
        self._process = subprocess.Popen(program, env=environment, stderr=subprocess.DEVNULL)
        return self._process

    async def write(self, ledger: str, *events: Event) -> None:
        seq, prev = self._chain.get(ledger, (0, ""))
        packed = pack([stored_event(event) for event in events])
        record = Record(new_id(), seq + 1, prev, "hand", 1_700_000_000_000 + seq, {}, packed)
        await self._log.append(TP(ledger, 0), encode(record))
        self._chain[ledger] = (seq + 1, record.id)

    async def wait_for(self, kind: type[Report], count: int) -> Report:
        """Wait for the report number `count` of this kind, and return it."""
        async with asyncio.timeout(PATIENCE_S):
            while len(reports := [r for r in self.reports if isinstance(r, kind)]) < count:
                for entries in (await self._tail.poll(0.2)).values():
                    for entry in entries:
                        body = cloudevents.decode(entry.value).body
                        self.reports += ExecutorReported.model_validate_json(body).reports
        return reports[count - 1]

    async def admit(self, registered: Report) -> None:
        assert isinstance(registered, NodeRegistered)
        values = registered.model_dump(exclude={"kind"})
        await self.write("placement", NodeJoined(**values, executor_id="e1"))

    async def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        await self._tail.stop()
        await self._log.stop()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    with embedded_broker(tmp_path) as kafka:
        made = Stage(tmp_path, kafka)
        try:
            await made.open()
            yield made
        finally:
            await made.close()


async def test_a_killed_executor_loses_no_job_and_a_stopped_one_reports_leaving(
    stage: Stage,
) -> None:
    first = stage.start()
    await stage.admit(await stage.wait_for(NodeRegistered, 1))
    await stage.write("placement", enqueued("j1", a_spec(600)), placed("j1", ("n1", 0)))
    ready = await stage.wait_for(WorkerReady, 1)
    await stage.write("placement", started("j1"))
    first.send_signal(signal.SIGKILL)
    first.wait()

    second = stage.start()
    await stage.admit(await stage.wait_for(NodeRegistered, 2))
    stopped = await stage.wait_for(WorkerStopped, 1)
    assert isinstance(ready, WorkerReady) and isinstance(stopped, WorkerStopped)
    assert stopped.allocation_id == ready.allocation_id

    await stage.write("placement", enqueued("j2", a_spec(0.1)), placed("j2", ("n1", 0)))
    await stage.wait_for(WorkerReady, 2)
    await stage.write("placement", started("j2"))
    end = await stage.wait_for(WorkerExited, 1)
    assert isinstance(end, WorkerExited) and (end.job_id, end.exit_code) == ("j2", 0)

    second.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(second.wait, PATIENCE_S) == 0
    await stage.wait_for(NodeLeaving, 1)
