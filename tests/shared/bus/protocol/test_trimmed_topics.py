"""A decider under Faust, on a Kafka with topics that were trimmed behind their archive."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.broker import kafka, topics, trimming
from infra.machine.process import Running, free_ports, spawn
from shared.bus.archive.archive import Archive
from shared.bus.archive.archiver import Archiver, ArchiverOptions
from shared.bus.archive.folder_store import FolderStore
from shared.bus.archive.tiered_log import TieredLog
from shared.bus.clock import now_ms
from shared.bus.folds.fold import Fold, Replica
from shared.bus.logs.log import Log
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from shared.process.connection import Connection
from tests.broker_clients import log_of
from tests.harness.ledger import SeatDecider, Seats, command
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[4]
COMMANDS, LEDGER = TP("commands", 0), TP("admission", 0)

pytestmark = [
    pytest.mark.parts,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]


class Scene:
    """A plain Kafka, an archive, and a decider that is started and ended."""

    def __init__(self, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self.folder = folder
        self.broker = kafka.start(folder / "broker", self.port, plain=True)
        self.connection = Connection(f"127.0.0.1:{self.port}")
        self.store = FolderStore(folder / "archive")
        self.store.create()
        topics.create(self.connection, 1, True)
        self.running: list[Running] = []

    def start(self) -> Running:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "BERTH_KAFKA": self.connection.servers,
            "BERTH_PARTITIONS": "1",
            "BERTH_DATA": str(self.folder / "data"),
            "BERTH_ARCHIVE": str(self.folder / "archive"),
        }
        program = [sys.executable, "-m", "tests.shared.bus.seat_service"]
        running = spawn("admission", program, self.folder / "service.log", environment)
        self.running.append(running)
        running.wait_ready((self.folder / "data" / "admission.ready").exists, PATIENCE_S)
        return running

    def crash_broker(self) -> None:
        self.broker.kill()
        self.broker = kafka.run(self.folder / "broker", self.port)

    def stop(self) -> None:
        for running in [*self.running, self.broker]:
            running.stop()

    async def archive(self, log: Log, *tps: TP) -> None:
        archiver = Archiver(log, Archive(self.store), ArchiverOptions("test"), now_ms)
        for tp in tps:
            await archiver.archive(tp, await log.end(tp))

    async def folded(self, log: Log) -> Replica[Seats]:
        return await Fold(SeatDecider(), 0, TieredLog(log, self.store), None).run(Cursor())


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.stop()


async def test_a_service_goes_on_over_trimmed_topics_and_a_crash_of_the_broker(
    scene: Scene,
) -> None:
    log = log_of(scene.connection)
    await log.start()
    for n in range(30):
        await log.append(COMMANDS, command(f"c{n}"))
    await scene.archive(log, COMMANDS)
    trimming.trim(scene.connection, {COMMANDS: 20})
    first = scene.start()
    await decided(scene, log, 30)
    assert first.process.poll() is None
    first.stop()

    await scene.archive(log, COMMANDS, LEDGER)
    before = (await scene.folded(log)).state
    trimming.trim(scene.connection, {COMMANDS: 30, LEDGER: await log.end(LEDGER)})
    with pytest.raises(TailLost, match="does not begin at 0"):
        await Fold(SeatDecider(), 0, log, None).run(Cursor())
    shutil.rmtree(scene.folder / "data")
    for n in range(30, 40):
        await log.append(COMMANDS, command(f"c{n}"))
    second = scene.start()
    await decided(scene, log, 40)
    second.stop()

    scene.crash_broker()
    after = (await scene.folded(log)).state
    assert not after.problems()
    assert before.taken.items() <= after.taken.items()
    assert sorted(after.answers) == sorted(f"c{n}" for n in range(40))
    await log.stop()


async def decided(scene: Scene, log: Log, commands: int) -> None:
    """Wait until so many commands are answered, each once."""
    replica: list[Replica[Seats]] = []

    def is_reached() -> bool:
        return bool(replica) and len(replica[-1].state.answers) >= commands

    while not is_reached():
        replica.append(await scene.folded(log))
    assert not replica[-1].state.problems()
