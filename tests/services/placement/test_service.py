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

import psutil
import pytest

from infra.broker import tansu, topics
from infra.machine.process import free_ports
from shared.bus.clock import now_ms
from shared.bus.ids import new_id
from shared.bus.kafka import KafkaLog
from shared.bus.tail import LedgerTail
from shared.connection import Connection
from shared.contracts.access import PoolConfigured
from shared.contracts.base import Event
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import JobPlaced, JobStarted, JobSucceeded
from shared.contracts.reports import Alive, ExecutorReported, Heartbeats, Report
from shared.ledger import cloudevents
from shared.ledger.decider import Fact
from shared.ledger.partition import TP
from shared.ledger.record import Record, encode, pack
from shared.testing.ledgers import stored
from tests.services.placement.core.lane import exited, job, ready, registered

PATIENCE_S = 120.0
POOL = PoolConfigured(partition=0, pool="p", lease_s=3.0)
E = TypeVar("E", bound=Event)


class Stage:
    """A broker, inputs written by hand, and the program under test."""

    def __init__(self, folder: Path, kafka: str) -> None:
        self.folder = folder
        self.kafka = kafka
        self.facts: list[Fact] = []
        self._log = KafkaLog(Connection(kafka, idempotent=False))
        self._tail = LedgerTail(KafkaLog(Connection(kafka, idempotent=False)), {"placement": [0]})
        self._process: subprocess.Popen[bytes] | None = None

    async def open(self) -> None:
        await self._tail.start()

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

    async def write(self, ledger: str, *events: Event) -> None:
        """The first and only record of a ledger."""
        facts = [stored(event) for event in events]
        record = Record(new_id(), 1, "", "hand", now_ms(), {}, pack(facts))
        await self._log.append(TP(ledger, 0), encode(record))

    async def report(self, *reports: Report) -> None:
        await self.post("reports", ExecutorReported(executor_id="e1", reports=reports))

    async def run(self, lease: str, job_id: str) -> None:
        """The worker is ready, and then it is done."""
        await self.report(ready(lease, job_id))
        await self.report(exited(lease, job_id))

    async def post(self, topic: str, message: ExecutorReported | Heartbeats) -> None:
        data = message.model_dump_json().encode()
        value = cloudevents.encode(
            id=new_id(), source="/test", type=message.TYPE, data=data, at_ms=now_ms()
        )
        await self._log.append(TP(topic, 0), value)

    async def decided(self, kind: type[E], subject: str = "") -> tuple[Fact, E]:
        """The first fact of this kind, and about this job or node."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for fact in self.facts:
                    about = not subject or fact.event.subject == subject
                    if isinstance(fact.event, kind) and about:
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
        topics.create(Connection(f"127.0.0.1:{port}", idempotent=False), 1, durable=False)
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
    await stage.write("access", POOL)
    program = stage.start()
    await stage.report(registered("n1"))
    await stage.decided(NodeJoined)
    await stage.write("admission", job("a"))
    fact, placed = await stage.decided(JobPlaced)
    program.send_signal(signal.SIGKILL)
    program.wait()

    program = stage.start()
    lease = f"{fact.place}/{placed.allocations[0].rank}"
    await stage.report(ready(lease, "a"))
    await stage.decided(JobStarted)
    await stage.report(exited(lease, "a"))
    await stage.decided(JobSucceeded)
    for _ in range(12):
        alive = {"n1": Alive(incarnation="i1")}
        await stage.post("heartbeats", Heartbeats(executor_id="e1", nodes=alive))
        await asyncio.sleep(0.3)
    assert not any(isinstance(each.event, NodeLost) for each in stage.facts)
    _, lost = await stage.decided(NodeLost)
    assert lost.node_id == "n1" and lost.silent_s > 3
    program.terminate()
    assert program.wait(60) == 0


def solver_of(program: subprocess.Popen[bytes]) -> psutil.Process:
    """The child that solves contended rounds."""
    children = psutil.Process(program.pid).children(recursive=True)
    return next(c for c in children if "services.placement.solver" in c.cmdline())


@pytest.mark.stack
async def test_contended_rounds_are_solved_and_outlive_their_solver(stage: Stage) -> None:
    """Six GPUs of eight for one job after the other, while others wait for four."""
    patient = {"solver": "cpsat", "solver_ms": 20_000, "lease_s": 600.0}
    await stage.write("access", POOL.model_copy(update=patient))
    program = stage.start()
    await stage.report(registered("n1"))
    await stage.decided(NodeJoined)
    sizes = {"a": 6, "b": 6, "c": 4, "d": 6}
    await stage.write("admission", *(job(name, gpus=size) for name, size in sizes.items()))
    fact, placed = await stage.decided(JobPlaced, "a")
    assert placed.solver in ("optimal", "kept_greedy") and placed.policy.endswith("+cpsat")
    assert placed.terms["bound"] >= placed.terms["objective"] >= placed.terms["greedy_objective"]
    assert placed.terms["solve_ms"] > 0

    solver = solver_of(program)
    solver.kill()
    solver.wait(60)
    await stage.run(f"{fact.place}/0", "a")
    fact, placed = await stage.decided(JobPlaced, "b")
    assert placed.solver in ("died", "optimal", "kept_greedy"), "by greedy, or by the next process"
    await stage.run(f"{fact.place}/0", "b")
    _, placed = await stage.decided(JobPlaced, "c")
    assert placed.solver in ("optimal", "kept_greedy")
    assert solver_of(program).pid != solver.pid
    solver = solver_of(program)
    program.terminate()
    assert program.wait(60) == 0
    solver.wait(60)
