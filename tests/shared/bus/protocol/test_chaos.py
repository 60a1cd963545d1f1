"""Rivals, accidents and crashes at random; the log must hold, and each sabotage must show."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.bus.lane.lane import Lane, LaneSettings
from shared.bus.logs.log import Entry
from shared.bus.logs.memory import MemoryBroker
from shared.ledger.errors import ProtocolViolation
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.ledger.record import decode
from shared.process.connection import Connection
from tests.harness.flaky_log import Accident, FlakyLog
from tests.harness.ledger import SeatDecider, Seats, accepted, command
from tests.patience import PATIENCE_S
from tests.shared.bus.conftest import Bench, Broker

COMMANDS = 120
RIVALS = 3
ACCIDENTS: tuple[Accident, ...] = ("lost_request", "lost_ack", "late", "duplicate", "wrong_offset")
FAST = LaneSettings(window_ms=0, snapshot_every=3, snapshot_pause_s=0)

Sabotage = Callable[[Lane[Seats]], None]
Judge = Callable[[TP, list[Entry]], Seats]


def honest(_: Lane[Seats]) -> None:
    return None


def trusts_every_ack(lane: Lane[Seats]) -> None:
    send = lane._rounds._send

    async def trusting(value: bytes) -> int | None:
        return None if await send(value) is None else lane.cursor.next

    lane._rounds._send = trusting  # type: ignore[method-assign]


def keeps_used_inputs(lane: Lane[Seats]) -> None:
    def keep(vector: object) -> None:
        lane.inbox.silent = 0

    lane.inbox.settle = keep  # type: ignore[method-assign]


def fold_accepted(tp: TP, entries: list[Entry]) -> Seats:
    return evolved(tp, [fact for a in accepted(tp, entries) for fact in a.facts(own=True)])


def fold_everything(tp: TP, entries: list[Entry]) -> Seats:
    """Fold every record, without the reader rule."""
    records = [(e.offset, decode(e.value)) for e in entries]
    taken = [Accepted(tp.topic, tp.partition, o, r) for o, r in records if r is not None]
    return evolved(tp, [fact for a in taken for fact in a.facts(own=True)])


def evolved(tp: TP, facts: list) -> Seats:  # type: ignore[type-arg]
    decider = SeatDecider()
    state = decider.initial(tp.partition)
    for fact in facts:
        decider.evolve(state, fact)
    return state


class Chaos:
    """Some rival writers of one lane; each gets every command."""

    def __init__(self, seed: int, folder: Path, sabotage: Sabotage) -> None:
        self.random = random.Random(seed)
        self.bench = Bench(Broker(Connection(""), memory=MemoryBroker()), folder)
        self.sabotage = sabotage
        self.wrong: list[str] = []
        self.losses = 0

    async def run(self, judge: Judge) -> list[str]:
        """Return the violations; a writer that stops with one counts too."""
        try:
            rivals = await self.disturbed()
            await self.settled(rivals[0][0])
            self.compare([lane for lane, _ in rivals], judge)
        except ProtocolViolation as error:
            self.wrong.append(repr(error))
        self.wrong += self.bench.failures()
        await self.bench.close()
        return self.wrong

    async def disturbed(self) -> list[tuple[Lane[Seats], FlakyLog]]:
        rivals = [await self.spawn() for _ in range(RIVALS)]
        for n in range(COMMANDS):
            await self.bench.send(command(f"c{n}"))
            for index in self.random.sample(range(RIVALS), RIVALS):
                lane, flaky = rivals[index]
                await self.bench.deliver(lane)
                if self.random.random() < 0.15:
                    flaky.accidents.append(self.random.choice(ACCIDENTS))
                if self.random.random() < 0.03:
                    await self.bench.stop(lane)
                    rivals[index] = await self.spawn()
            await asyncio.sleep(self.random.choice((0, 0, 0.002)))
            self.losses = max(self.losses, *(lane.lost_appends for lane, _ in rivals))
        return rivals

    async def spawn(self) -> tuple[Lane[Seats], FlakyLog]:
        lane, flaky = self.bench.make_lane(settings=FAST, snapshots=True)
        self.sabotage(lane)
        await self.bench.run(lane)
        return lane, flaky

    async def settled(self, lane: Lane[Seats]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while lane.inbox.pending:
                    await asyncio.sleep(0.01)
        except TimeoutError:
            self.wrong.append("a writer did not decide all inputs")

    def compare(self, lanes: list[Lane[Seats]], judge: Judge) -> None:
        memory = self.bench.broker.memory
        assert memory is not None
        truth = judge(self.bench.ledger, memory.entries(self.bench.ledger))
        self.wrong += truth.problems()
        if len(truth.answers) != COMMANDS:
            self.wrong.append(f"{len(truth.answers)} of {COMMANDS} answered")
        for lane in lanes:
            if not lane.state.taken.items() <= truth.taken.items():
                self.wrong.append("a writer's state has records that no reader accepts")


@pytest.fixture(autouse=True)
def no_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.bus.lane.commit.BACK_OFF_S", 0.001)


@pytest.mark.parametrize("seed", range(6))
async def test_no_accident_or_rival_loses_or_repeats_an_input(seed: int, tmp_path: Path) -> None:
    chaos = Chaos(seed, tmp_path, honest)
    assert await chaos.run(fold_accepted) == []
    assert chaos.losses > 10


@pytest.mark.parametrize("sabotage", [trusts_every_ack, keeps_used_inputs])
async def test_a_writer_without_a_rule_is_detected(sabotage: Sabotage, tmp_path: Path) -> None:
    violations = [await Chaos(n, tmp_path / str(n), sabotage).run(fold_accepted) for n in range(2)]
    assert any(violations)


async def test_a_reader_without_the_rule_is_detected(tmp_path: Path) -> None:
    assert await Chaos(0, tmp_path, honest).run(fold_everything) != []
