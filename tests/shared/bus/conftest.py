"""One suite over three brokers: in memory, the embedded one and Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from infra.broker import kafka, tansu, topics
from infra.machine.process import free_ports
from shared.bus.folds.snapshots import Snapshots
from shared.bus.lane.lane import Lane, LaneSettings
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Entry, Log
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.topics import TOPICS
from shared.ledger.decider import Fact
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.process.connection import Connection
from tests.broker_clients import log_of, read_to_end
from tests.harness.flaky_log import FlakyLog
from tests.harness.ledger import SeatDecider, Seats, fold
from tests.patience import PATIENCE_S

PARTITIONS = 48
QUICK = LaneSettings(window_ms=2, snapshot_every=2, snapshot_pause_s=0)
NAMES = ("admission", "commands", "placement", "reports", "access", "heartbeats")


@dataclass(frozen=True)
class Broker:
    """The connection of a broker, and its lanes that no test has used yet."""

    connection: Connection
    lanes: Iterator[int] = field(default_factory=count)
    memory: MemoryBroker | None = None

    def log(self) -> Log:
        if self.memory is not None:
            return MemoryLog(self.memory)
        return KafkaLog(self.connection)

    def patient_log(self) -> Log:
        """Return a log whose appends wait as long as a test does."""
        return self.log() if self.memory is not None else log_of(self.connection)


def wide_topics(connection: Connection) -> None:
    """Create the topics, with a lane for each test, so that one broker serves them all."""
    specs = [TOPICS[name] for name in NAMES if name != "access"]
    durable = connection.idempotent
    topics.create(connection, PARTITIONS, durable, specs)
    topics.create(connection, 1, durable, [TOPICS["access"], TOPICS["access.commands"]])


@pytest.fixture(scope="session")
def tansu_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    (port,) = free_ports(1)
    running = tansu.start(tmp_path_factory.mktemp("tansu"), port)
    try:
        connection = Connection(f"127.0.0.1:{port}", idempotent=False)
        wide_topics(connection)
        yield Broker(connection)
    finally:
        running.stop()


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if reason := kafka.missing():
        pytest.skip(reason)
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("kafka")
    running = kafka.start(folder, port)
    try:
        wide_topics(kafka.root(folder))
        yield Broker(kafka.root(folder))
    finally:
        running.stop()


@pytest.fixture(
    params=[
        "memory",
        pytest.param("tansu", marks=pytest.mark.process),
        pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.parts]),
    ]
)
def broker(request: pytest.FixtureRequest) -> Broker:
    if request.param == "memory":
        return Broker(Connection(""), memory=MemoryBroker())
    broker: Broker = request.getfixturevalue(f"{request.param}_broker")
    return broker


class Bench:
    """One lane of one broker, with the lanes that a test runs on it."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.partition = next(broker.lanes)
        self.ledger = TP("admission", self.partition)
        self.commands = TP("commands", self.partition)
        self.placement = TP("placement", self.partition)
        self.raw = broker.patient_log()
        self.reports: list[tuple[list[Fact], list[str]]] = []
        self._running: list[tuple[Lane[Seats], asyncio.Task[None]]] = []

    def make_lane(
        self, *, settings: LaneSettings = QUICK, snapshots: bool = False
    ) -> tuple[Lane[Seats], FlakyLog]:
        flaky = FlakyLog(self.broker.log())
        store: Snapshots[Seats] = Snapshots(self.folder, "admission", self.partition, Seats.SCHEMA)
        lane = Lane(
            SeatDecider(),
            self.partition,
            flaky,
            inputs=[self.commands, self.placement],
            decoder=InputDecoder("admission"),
            snapshots=store if snapshots else None,
            settings=settings,
            on_accepted=lambda facts, parents, _: self.reports.append((facts, parents)),
        )
        return lane, flaky

    async def run(self, lane: Lane[Seats]) -> Lane[Seats]:
        await lane.start()
        self._running.append((lane, asyncio.create_task(lane.run())))
        return lane

    async def started(
        self, *, settings: LaneSettings = QUICK, snapshots: bool = False
    ) -> tuple[Lane[Seats], FlakyLog]:
        lane, flaky = self.make_lane(settings=settings, snapshots=snapshots)
        return await self.run(lane), flaky

    async def stop(self, lane: Lane[Seats]) -> None:
        for running, task in self._running:
            if running is lane:
                await lane.revoke()
                await asyncio.wait([task], timeout=PATIENCE_S)
                task.result()
                await lane.stop()
        self._running = [pair for pair in self._running if pair[0] is not lane]

    def failures(self) -> list[str]:
        """Return the errors of lanes that have ended by themselves, and forget these lanes."""
        ended = [pair for pair in self._running if pair[1].done()]
        self._running = [pair for pair in self._running if pair not in ended]
        return [repr(task.exception()) for _, task in ended if not task.cancelled()]

    async def send(self, value: bytes, tp: TP | None = None) -> int:
        return await self.raw.append(tp or self.commands, value)

    async def deliver(self, lane: Lane[Seats], tp: TP | None = None) -> None:
        """Deliver an input as a host does, from the lane's next offset to the end."""
        tp = tp or self.commands
        for entry in await self.read(tp, lane.next_offsets()[tp]):
            await lane.deliver(tp, entry.offset, entry.value)

    async def read(self, tp: TP, offset: int = 0) -> list[Entry]:
        return await read_to_end(self.raw, tp, offset)

    async def until(self, lane: Lane[Seats], answers: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(lane.state.answers) < answers or lane.inbox.pending:
                await asyncio.sleep(0.01)

    async def truth(self) -> Seats:
        """Return the state of an independent reader."""
        return fold(self.ledger, await self.read(self.ledger))

    async def close(self) -> None:
        for lane, _ in list(self._running):
            await self.stop(lane)
        await self.raw.stop()


@pytest.fixture
async def bench(broker: Broker, tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(broker, tmp_path)
    await made.raw.start()
    yield made
    await made.close()


@pytest.fixture
async def twin(tmp_path: Path) -> AsyncIterator[Bench]:
    """A bench on the in-memory broker, for accidents that no real one has on request."""
    made = Bench(Broker(Connection(""), memory=MemoryBroker()), tmp_path)
    yield made
    await made.close()
