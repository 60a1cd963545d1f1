"""A ledger that lost its tail: a real broker is put back to an older copy of its disk.

Meanwhile a GPU has gone from one worker to another, of which the copy knows nothing. Placement,
executor, agent and workers are real, admission and access are written by hand.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from benchmarks.parts.chaos.nodes.ticks import WORKER, find_double_uses, read_uses
from infra.broker import kafka, topics
from infra.machine.owned_folders import scratch_folder
from infra.machine.process import Running, free_ports
from shared.bus.clock import now_ms
from shared.bus.fatal import EXIT_ERROR, EXIT_PROTOCOL
from shared.bus.folds.snapshots import Snapshots
from shared.bus.ids import new_id
from shared.bus.logs.tail import LedgerTail
from shared.contracts.base import Event
from shared.contracts.enrolment import NodeEnrolled
from shared.contracts.keys import hash_secret
from shared.contracts.pools import PoolConfigured
from shared.ledger.partition import TP
from shared.ledger.record import Record, encode, pack
from shared.ledger.stored_event import stored_event
from shared.process.connection import Connection
from tests.agent.node_bench import NodeBench
from tests.broker_clients import log_of
from tests.e2e.stand import eventually
from tests.patience import PATIENCE_S
from tests.services.placement.core.lane import job

pytestmark = [
    pytest.mark.process,
    pytest.mark.parts,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]
POOL = PoolConfigured(partition=0, pool="p", backends=("agent",), stop_after_s=86_400.0)
"""No lease lapses during the test, however busy the machine is."""
SECRET = "s" * 64
T = TypeVar("T")


class Broker:
    """One Kafka whose disk is copied and put back while it is stopped."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._copy = folder / "kafka", folder / "copy"
        (self._port,) = free_ports(1)
        self.running: Running = kafka.start(self._folder, self._port, plain=True)
        self.connection = Connection(f"127.0.0.1:{self._port}")
        topics.create(self.connection, 1, durable=True)

    def copy(self) -> None:
        self.running.stop()
        shutil.copytree(self._folder / "log", self._copy)
        self._run()

    def put_back(self) -> None:
        self.running.stop()
        shutil.rmtree(self._folder / "log")
        shutil.copytree(self._copy, self._folder / "log")
        self._run()

    def _run(self) -> None:
        self.running = kafka.run(self._folder, self._port)

    def decided(self) -> int:
        """Return the number of records that count in the ledger of placement."""
        return _run(self._decided())

    def append(self, ledger: str, seq: int, previous: str, *events: Event) -> str:
        """Append a record with these events; return its id."""
        facts = pack([stored_event(event) for event in events])
        record = Record(new_id(), seq, previous, "hand", now_ms(), {}, facts)
        _run(self._append(TP(ledger, 0), encode(record)))
        return record.id

    async def _decided(self) -> int:
        tail = LedgerTail(log_of(self.connection), {"placement": [0]})
        await tail.start()
        try:
            while not tail.caught_up:
                await tail.poll()
            return tail.cursor("placement", 0).seq
        finally:
            await tail.stop()

    async def _append(self, tp: TP, value: bytes) -> None:
        log = log_of(self.connection)
        await log.start()
        try:
            await log.append(tp, value)
        finally:
            await log.stop()


def _run(work: Coroutine[Any, Any, T]) -> T:
    async def patient() -> T:
        async with asyncio.timeout(PATIENCE_S):
            return await work

    return asyncio.run(patient())


class Service:
    """A service, and the folder with what it remembers of the log."""

    def __init__(self, name: str, broker: Broker, folder: Path, **settings: str) -> None:
        self._name, self._log = name, folder / f"{name}.log"
        self._settings = {
            "BERTH_KAFKA": broker.connection.servers,
            "BERTH_PARTITIONS": "1",
            "BERTH_INSTANCE": f"{name}-1",
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._memory = folder

    def start(self, memory: Path) -> None:
        """Start it; `memory` is where it keeps its snapshots and marks."""
        self._memory = memory
        environment = {"PATH": os.environ["PATH"], **self._settings, "BERTH_DATA": str(memory)}
        program = [sys.executable, "-m", f"services.{self._name}"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(program, env=environment, stdout=log, stderr=log)

    def wait_refusal(self) -> None:
        """Wait until it ends because of the log, and check that it says so.

        A library may end it before, when the broker is away: it is started again then, as the
        supervisor does.
        """
        assert self._process is not None
        while (code := self._process.wait(PATIENCE_S)) == EXIT_ERROR:
            self.start(self._memory)
        printed = self._log.read_text()
        assert code == EXIT_PROTOCOL and "tail lost" in printed, (self._name, code, printed[-4000:])

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)


class Node(NodeBench):
    """A node with one GPU, whose workers note when they use it."""

    def __init__(self, folder: Path, executor: str) -> None:
        super().__init__(folder, f"tail-{os.getpid()}", executor)
        self.settings |= {"gpus": 1, "gpu_type": "a100"}
        self.ticks = folder / "ticks"
        self.ticks.mkdir()

    def job(self, name: str) -> Event:
        """Return an admitted job that ticks until there is a file of its name."""
        folder = self.ticks.parent / name
        folder.symlink_to(self.ticks)
        return job(name, command=(sys.executable, "-ISc", WORKER, str(folder), "1e6"), grace_s=1)

    def end(self, name: str) -> None:
        (self.ticks.parent / f"{name}.end").touch()

    def wait_ticks(self, name: str) -> None:
        eventually(lambda: name in {use.job for use in read_uses(self.ticks)})


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch_folder("tail") as folder:
        yield folder


@pytest.fixture
def broker(folder: Path) -> Iterator[Broker]:
    broker = Broker(folder)
    try:
        yield broker
    finally:
        broker.running.stop()


def test_no_gpu_has_two_holders_after_the_ledger_lost_its_tail(
    broker: Broker, folder: Path
) -> None:
    (port,) = free_ports(1)
    placement = Service("placement", broker, folder)
    own = {"BERTH_EXECUTOR_ID": "executor-1", "BERTH_PORT": str(port)}
    executor = Service("executor", broker, folder, **own)
    node = Node(folder, f"http://127.0.0.1:{port}")
    services, memory, fresh = (placement, executor), folder / "memory", folder / "fresh"
    try:
        broker.append("access", 1, "", POOL, enrolled(node.node_id))
        for service in services:
            service.start(memory)
        node.start()
        first = broker.append("admission", 1, "", node.job("a"))
        node.wait_ticks("a")
        broker.copy()
        copied = broker.decided()

        node.end("a")
        broker.append("admission", 2, first, node.job("b"))
        node.wait_ticks("b")
        eventually(lambda: placement_mark(memory) == broker.decided() > copied)
        broker.put_back()
        for service in services:
            service.wait_refusal()
        assert broker.decided() == copied, "nothing is decided on the older copy"
        placement.start(memory)
        placement.wait_refusal()
        assert broker.decided() == copied, "nor after a restart"
        assert node.living(), "a worker goes on while nothing decides"

        # An operator accepts the loss, as a restore does: the services begin with empty folders.
        for service in services:
            service.start(fresh)
        broker.append("admission", 2, first, node.job("c"))
        node.wait_ticks("c")
        node.end("c")
    finally:
        node.close()
        for service in services:
            service.close()
    uses = read_uses(node.ticks)
    assert {use.job for use in uses} == {"a", "b", "c"}
    assert find_double_uses(uses) == []
    assert node.status()["generation"] == 2, "the node ended what the older copy does not know"


def placement_mark(memory: Path) -> int:
    """Return the last record that placement would miss at a start."""
    return Snapshots(memory / "snapshots", "placement", 0, "").marked().seq


def enrolled(node_id: str) -> NodeEnrolled:
    return NodeEnrolled(
        node_id=node_id,
        pool="p",
        credential_sha256=hash_secret(SECRET),
        approved=True,
        expires_at=2**53,
    )
