"""The real program on the embedded broker: a job's life across a kill, and a node that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from shared.bus.clock import now_ms
from shared.bus.ids import new_id
from shared.bus.logs.tail import LedgerTail
from shared.contracts.attempts import JobStarted, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.clocks import ClockStepped
from shared.contracts.nodes import NodeJoined, NodeLost, NodeSuspected
from shared.contracts.placement import JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import Alive, ExecutorReported, Heartbeats, Report
from shared.ledger import cloudevents
from shared.ledger.decider import Fact
from shared.ledger.partition import TP
from shared.ledger.record import Record, encode, pack
from shared.ledger.stored_event import stored_event
from shared.process.connection import Connection
from tests.broker_clients import log_of
from tests.embedded_broker import embedded_broker
from tests.patience import PATIENCE_S
from tests.services.placement.core.lane import exited, job, ready, registered

LEASE_S = 10.0
POOL = PoolConfigured(partition=0, pool="p", lease_s=LEASE_S)
E = TypeVar("E", bound=Event)
SHIFTED_CLOCK = """
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
wall_ns = time.time_ns
def shifted_ns():
    return wall_ns() + int(Path({shift!r}).read_text()) * 1_000_000_000
time.time_ns = shifted_ns
time.time = lambda: shifted_ns() / 1e9
"""
"""Runs before the program: a file has the seconds by which its wall clock is wrong."""
HOUR_S = 3600


class Stage:
    """A broker, inputs written by hand, and the program under test."""

    def __init__(self, folder: Path, kafka: str, service: str = "placement") -> None:
        self.service = service
        self.folder = folder
        self.kafka = kafka
        self.facts: list[Fact] = []
        self._log = log_of(Connection(kafka, idempotent=False))
        self._tail = LedgerTail(log_of(Connection(kafka, idempotent=False)), {service: [0]})
        self._process: subprocess.Popen[bytes] | None = None
        self._shift = folder / "shift"
        self._last: dict[str, tuple[int, str]] = {}
        """Number and id of the last record that was written to a ledger."""

    def shift_clock(self, seconds: int) -> None:
        """Step the wall clock of the program, from its next reading on."""
        written = self._shift.with_suffix(".new")
        written.write_text(str(seconds))
        written.rename(self._shift)

    async def open(self) -> None:
        await self._tail.start()

    def start(self) -> subprocess.Popen[bytes]:
        if not self._shift.exists():
            self.shift_clock(0)
        customized = self.folder / "sitecustomize.py"
        customized.write_text(SHIFTED_CLOCK.format(shift=str(self._shift)))
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.folder),
            "BERTH_KAFKA": self.kafka,
            "BERTH_PARTITIONS": "1",
            "BERTH_IDEMPOTENT": "0",
            "BERTH_DATA": str(self.folder),
            "BERTH_INSTANCE": f"{self.service}-1",
        }
        program = [sys.executable, "-m", f"services.{self.service}"]
        self._process = subprocess.Popen(program, env=environment, stderr=subprocess.DEVNULL)
        return self._process

    async def write(self, ledger: str, *events: Event) -> None:
        """The next record of a ledger that only this test writes."""
        facts = [stored_event(event) for event in events]
        seq, previous = self._last.get(ledger, (0, ""))
        record = Record(new_id(), seq + 1, previous, "hand", now_ms(), {}, pack(facts))
        self._last[ledger] = (record.seq, record.id)
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
                await self.read()

    async def read(self) -> None:
        """Take what the program has decided meanwhile."""
        for accepted in await self._tail.poll(0.2):
            self.facts += accepted.facts()

    async def beat(self, node_id: str) -> None:
        alive = {node_id: Alive(incarnation="i1")}
        await self.post("heartbeats", Heartbeats(executor_id="e1", nodes=alive))

    @asynccontextmanager
    async def beating(self, node_id: str) -> AsyncIterator[None]:
        """Beat for the node until the block ends."""

        async def beat() -> None:
            while True:
                await self.beat(node_id)
                await asyncio.sleep(0.3)

        beats = asyncio.create_task(beat())
        try:
            yield
        finally:
            beats.cancel()
            with suppress(asyncio.CancelledError):
                await beats

    def has_lost(self, node_id: str) -> bool:
        lost = (fact.event for fact in self.facts if isinstance(fact.event, NodeLost))
        return any(event.node_id == node_id for event in lost)

    async def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        await self._tail.stop()
        await self._log.stop()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    with embedded_broker(tmp_path / "broker") as kafka:
        made = Stage(tmp_path, kafka)
        try:
            await made.open()
            yield made
        finally:
            await made.close()


@pytest.mark.parts
@pytest.mark.stack
async def test_a_job_lives_through_a_kill_of_placement(stage: Stage) -> None:
    await stage.write("access", POOL)
    program = stage.start()
    async with stage.beating("n1"):
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
        await asyncio.sleep(1.2 * LEASE_S)
        await stage.read()
        assert not stage.has_lost("n1")
    _, lost = await stage.decided(NodeLost)
    assert lost.node_id == "n1" and lost.silent_s > LEASE_S
    program.terminate()
    assert program.wait(PATIENCE_S) == 0


@pytest.mark.parts
@pytest.mark.stack
async def test_a_step_of_the_wall_clock_neither_loses_nor_keeps_a_node(stage: Stage) -> None:
    """[R22] An hour forward and two back: a node that beats stays, one that is silent is lost."""
    await stage.write("access", POOL.model_copy(update={"release": 1}))
    program = stage.start()
    await stage.report(registered("n1"), registered("n2"))
    await stage.decided(NodeJoined, "n2")
    await stage.write("admission", job("a"))
    fact, placed = await stage.decided(JobPlaced)
    (allocation,) = placed.allocations
    await stage.report(ready(f"{fact.place}/{allocation.rank}", "a"))
    await stage.decided(JobStarted)
    (silent,) = {"n1", "n2"} - {allocation.node_id}
    stage.shift_clock(HOUR_S)
    async with stage.beating(allocation.node_id):
        suspected, _ = await stage.decided(NodeSuspected, silent)
        _, stepped = await stage.decided(ClockStepped)
        assert stepped.by_ms == pytest.approx(HOUR_S * 1000, abs=1000)
        assert suspected.at < fact.at + HOUR_S * 1000 / 2, "the ledger's time stepped"
        stage.shift_clock(-HOUR_S)
        await stage.decided(NodeLost, silent)
        assert not stage.has_lost(allocation.node_id)
    _, lost = await stage.decided(NodeLost, allocation.node_id)
    assert lost.silent_s > LEASE_S
    program.terminate()
    assert program.wait(PATIENCE_S) == 0


def solver_of(program: subprocess.Popen[bytes]) -> psutil.Process:
    """The child that solves contended rounds."""
    children = psutil.Process(program.pid).children(recursive=True)
    return next(c for c in children if "services.placement.solver" in c.cmdline())


SOLVED = ("optimal", "kept_greedy")


@pytest.mark.parts
@pytest.mark.stack
async def test_contended_rounds_are_solved_and_outlive_their_solver(stage: Stage) -> None:
    """Two nodes have room for one of the first jobs each; two smaller ones would fill a node."""
    patient = {"solver": "cpsat", "solver_ms": 60_000, "lease_s": 600.0}
    await stage.write("access", POOL.model_copy(update=patient))
    program = stage.start()
    for node in ("n1", "n2"):
        await stage.report(registered(node))
        await stage.decided(NodeJoined)
    sizes = {"a": 6, "b": 6} | {f"c{n:02d}": (5, 5, 4, 4)[n % 4] for n in range(16)}
    await stage.write("admission", *(job(name, gpus=size) for name, size in sizes.items()))
    _, placed = await stage.decided(JobPlaced)
    assert placed.solver in SOLVED and placed.policy.endswith("+cpsat")
    assert placed.terms["bound"] >= placed.terms["objective"] >= placed.terms["greedy_objective"]
    assert placed.terms["solve_ms"] > 0
    before = stage.facts[-1].seq

    solver = solver_of(program)
    solver.kill()
    solver.wait(PATIENCE_S)
    async with asyncio.timeout(PATIENCE_S):
        assert before < await solved_again(stage, before)
    assert solver_of(program).pid != solver.pid
    solver = solver_of(program)
    program.terminate()
    assert program.wait(PATIENCE_S) == 0
    solver.wait(PATIENCE_S)


async def solved_again(stage: Stage, after: int) -> int:
    """Run the jobs that are placed until a record behind `after` was solved; return its number."""
    ran: set[str] = set()
    while True:
        for fact in list(stage.facts):
            placed = fact.event
            if not isinstance(placed, JobPlaced) or placed.job_id in ran:
                continue
            if fact.seq > after and placed.solver in SOLVED:
                return fact.seq
            assert placed.solver in ("", "died", *SOLVED), "greedy places where no solver answers"
            ran.add(placed.job_id)
            for allocation in placed.allocations:
                await stage.run(f"{fact.place}/{allocation.rank}", placed.job_id)
        await stage.read()
