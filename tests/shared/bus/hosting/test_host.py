"""The Faust host as a process: lanes shared by a group, kills, and a clean end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from statistics import median

import pytest

from infra.broker import kafka, tansu, topics
from infra.machine.process import Running, free_ports, spawn
from infra.security import kafka_users
from shared.bus.clock import now_ms
from shared.bus.logs.tail import LedgerTail
from shared.ledger.decider import Fact
from shared.process.connection import Connection
from tests.broker_clients import PatientLog, log_of, producer_of
from tests.harness.ledger import BURST, SeatDecider, Seats, command
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process

LANES = 4
FULL = 12_000
"""Commands for one lane: more than twice as many as its inbox takes."""
OTHERS = 5
ANSWERS = 4
"""Events of each of them."""
ROOT = Path(__file__).parents[4]
ALL = ",".join(str(lane) for lane in range(LANES))


class Stage:
    """A broker with four lanes, and services on it."""

    def __init__(self, connection: Connection, folder: Path, broker: Running, port: int) -> None:
        """`connection` is the test's own; services on a guarded broker come as a user."""
        self.broker = broker
        self.connection = connection
        self.port = port
        self.folder = folder
        self.running: list[Running] = []

    def log(self) -> PatientLog:
        return log_of(self.connection)

    def start(self, name: str, *, lanes: str = "", failpoint: str = "") -> Running:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "BERTH_KAFKA": f"127.0.0.1:{self.port}",
            "BERTH_PARTITIONS": str(LANES),
            "BERTH_DATA": str(self.folder / name),
            "BERTH_INSTANCE": name,
            "BERTH_IDEMPOTENT": str(int(self.connection.idempotent)),
            "BERTH_LANES": lanes,
            "BERTH_FAILPOINT": failpoint,
            **self._credentials(),
        }
        program = [sys.executable, "-m", "tests.shared.bus.seat_service"]
        running = spawn(name, program, self.folder / f"{name}.log", environment)
        self.running.append(running)
        return running

    def _credentials(self) -> dict[str, str]:
        if self.connection.ca is None:
            return {}
        return {
            "BERTH_KAFKA_USER": "admission",
            "BERTH_KAFKA_PASSWORD_FILE": str(kafka_users.path_of(self.folder, "admission")),
            "BERTH_KAFKA_CA": str(self.connection.ca),
        }

    def restart_broker(self) -> None:
        self.broker.kill()
        self.broker = kafka.run(self.folder / "broker", self.port)

    def ready(self, running: Running) -> None:
        mark = self.folder / running.name / "admission.ready"
        running.wait_ready(mark.exists, PATIENCE_S)

    def end(self, running: Running) -> int:
        """Stop by SIGTERM; return the exit code."""
        running.process.send_signal(signal.SIGTERM)
        return running.process.wait(PATIENCE_S)


class Answers:
    """Reads and folds all four ledgers, as an independent reader."""

    def __init__(self, stage: Stage) -> None:
        self.tail = LedgerTail(stage.log(), {"admission": range(LANES)})
        self.decider = SeatDecider()
        self.states = [Seats() for _ in range(LANES)]

    def evolve(self, fact: Fact) -> None:
        self.decider.evolve(self.states[fact.partition], fact)

    def count(self, prefix: str) -> int:
        return sum(id.startswith(prefix) for state in self.states for id in state.answers)

    async def until(self, prefix: str, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.count(prefix) < count:
                for accepted in await self.tail.poll(0.2):
                    for fact in accepted.facts(own=True):
                        self.evolve(fact)

    def problems(self) -> list[str]:
        return [problem for state in self.states for problem in state.problems()]


@pytest.fixture(
    scope="module",
    params=["tansu", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.parts])],
)
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    if request.param == "kafka" and (reason := kafka.missing()):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp(request.param)
    (port,) = free_ports(1)
    if request.param == "kafka":
        broker = kafka.start(folder / "broker", port)
        stage = Stage(kafka.root(folder / "broker"), folder, broker, port)
    else:
        broker = tansu.start(folder / "broker", port)
        stage = Stage(Connection(f"127.0.0.1:{port}", idempotent=False), folder, broker, port)
    try:
        topics.create(stage.connection, LANES, stage.connection.idempotent)
        if stage.connection.ca is not None:
            topics.secure(stage.connection, folder)
        yield stage
    finally:
        stage.broker.stop()


@pytest.fixture
async def answers(stage: Stage) -> AsyncIterator[Answers]:
    answers = Answers(stage)
    await answers.tail.start()
    yield answers
    await answers.tail.stop()
    for running in stage.running:
        running.stop(grace_s=0)
    stage.running.clear()


async def send(stage: Stage, prefix: str, count: int) -> None:
    async with producer_of(stage.connection) as producer:
        posted = [
            await producer.post("commands", n % LANES, command(f"{prefix}{n}"))
            for n in range(count)
        ]
        await asyncio.gather(*posted)


async def test_a_service_with_fixed_lanes_answers_and_ends_with_0(
    stage: Stage, answers: Answers
) -> None:
    service = stage.start("fixed", lanes=ALL)
    stage.ready(service)
    await send(stage, "fixed", 100)
    await answers.until("fixed", 100)
    code = stage.end(service)
    assert (code, answers.problems()) == (0, [])
    assert not (stage.folder / "fixed" / "admission.ready").exists()


async def test_a_crash_at_any_point_of_an_append_loses_and_repeats_nothing(
    stage: Stage, answers: Answers
) -> None:
    await send(stage, "crash", 40)
    for place in ("before_send", "in_flight", "after_ack"):
        service = stage.start(place, lanes=ALL, failpoint=f"{place}:2")
        assert service.process.wait(PATIENCE_S) == 137
        await send(stage, place, 10)
    service = stage.start("survivor", lanes=ALL)
    await answers.until("crash", 40)
    for place in ("before_send", "in_flight", "after_ack"):
        await answers.until(place, 10)
    assert answers.problems() == []
    assert stage.end(service) == 0


async def test_a_group_shares_the_lanes_and_takes_over_from_the_dead(
    stage: Stage, answers: Answers
) -> None:
    one = stage.start("one")
    stage.ready(one)
    await send(stage, "alone", 40)
    await answers.until("alone", 40)
    two = stage.start("two")
    stage.ready(two)
    await send(stage, "both", 40)
    await answers.until("both", 40)
    one.kill()
    await send(stage, "after", 40)
    again = stage.start("one")
    await answers.until("after", 40)
    assert answers.problems() == []
    assert [stage.end(service) for service in (two, again)] == [0, 0]


async def test_a_restart_of_the_broker_loses_nothing(stage: Stage, answers: Answers) -> None:
    if not stage.connection.idempotent:
        pytest.skip("the embedded broker forgets everything when it ends")
    service = stage.start("patient", lanes=ALL)
    stage.ready(service)
    await send(stage, "before-kill", 40)
    stage.restart_broker()
    await send(stage, "after-kill", 40)
    await answers.until("before-kill", 40)
    await answers.until("after-kill", 40)
    assert answers.problems() == []
    assert service.process.poll() is None
    assert stage.end(service) == 0


async def test_an_input_with_an_answer_too_large_for_a_record_is_quarantined(
    stage: Stage, answers: Answers
) -> None:
    service = stage.start("violator", lanes=ALL)
    stage.ready(service)
    async with producer_of(stage.connection) as producer:
        await producer.send("commands", 3, command("huge", reason="burst 4000"))
        await producer.send("commands", 3, command("behind-it"))
    await answers.until("behind-it", 1)
    assert service.process.poll() is None
    assert "TooLarge" in service.log.read_text()
    assert stage.end(service) == 0


@pytest.mark.parts
async def test_a_full_lane_delays_the_commands_of_no_other_lane(stage: Stage) -> None:
    """Lane 1 has more to do than fits into its inbox, so that it is full most of the time.

    A busy machine delays one command or another; a lane that waits for lane 1 delays each of them.
    """
    service = stage.start("full", lanes=ALL)
    stage.ready(service)
    tail = LedgerTail(stage.log(), {"admission": range(LANES)})
    await tail.start()
    try:
        async with producer_of(stage.connection) as producer:
            posted = [
                await producer.post("commands", 1, command(f"full{n}", reason=f"{BURST}{ANSWERS}"))
                for n in range(FULL)
            ]
            await asyncio.gather(*posted)
            sent_ms: dict[str, int] = {}
            decided_ms: dict[str, int] = {}
            async with asyncio.timeout(PATIENCE_S):
                while len(decided_ms) < FULL + OTHERS:
                    if len(sent_ms) < OTHERS and len(decided_ms) > (1 + len(sent_ms)) * 1_000:
                        name = f"other{len(sent_ms)}"
                        sent_ms[name] = now_ms()
                        await asyncio.gather(await producer.post("commands", 0, command(name)))
                    for accepted in await tail.poll(0.05):
                        for fact in accepted.facts(own=True):
                            decided_ms.setdefault(fact.cause, fact.at)
        full_ms = [at for cause, at in decided_ms.items() if cause.startswith("full")]
        overtaken = {
            name: sum(at < ms <= decided_ms[name] for ms in full_ms) for name, at in sent_ms.items()
        }
        assert median(overtaken.values()) < FULL / 6, overtaken
        assert stage.end(service) == 0
    finally:
        await tail.stop()
        service.stop(grace_s=0)
        stage.running.clear()
