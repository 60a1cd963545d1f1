"""Lanes that are assigned and revoked, and the order of their inputs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from shared.bus.folds.snapshots import Snapshots
from shared.bus.hosting.lanes import Lanes
from shared.bus.hosting.watchdog import Watchdog
from shared.bus.ids import new_id
from shared.bus.inputs.inbox import ACCESS
from shared.bus.lane.lane import Lane
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.access import TenantRetired
from shared.contracts.codec import encode_event
from shared.ledger.decider import Decision, Input
from shared.ledger.errors import Stalled, TailLost
from shared.ledger.partition import TP
from shared.ledger.record import Record, StoredEvent, encode, pack
from tests.harness.ledger import SeatDecider, Seats, command
from tests.lost_tail import cut_tail
from tests.patience import PATIENCE_S
from tests.shared.bus.conftest import QUICK

FLOOD = 1_000
"""Defective inputs of one producer."""


class Shell:
    """A host on the in-memory broker."""

    def __init__(self, decider: SeatDecider | None = None, folder: Path | None = None) -> None:
        self.folder = folder
        self.broker = MemoryBroker()
        self.decider = decider or SeatDecider()
        self.held: list[int] = []
        self.lanes = Lanes(self.make, MemoryLog(self.broker), on_lane=self.on_lane)

    def make(self, partition: int) -> Lane[Seats]:
        inputs = [ACCESS, TP("commands", partition)]
        return Lane(
            self.decider,
            partition,
            MemoryLog(self.broker),
            inputs=inputs,
            settings=QUICK,
            snapshots=self.snapshots(partition) if self.folder is not None else None,
        )

    def snapshots(self, partition: int) -> Snapshots[Seats]:
        assert self.folder is not None
        return Snapshots(self.folder, self.decider.ledger, partition, Seats.SCHEMA)

    async def on_lane(self, lane: Lane[Seats]) -> None:
        self.held.append(lane.partition)
        try:
            await asyncio.Event().wait()
        finally:
            self.held.remove(lane.partition)

    def grant(self, count: int) -> None:
        """Append facts to `access`."""
        seq, last = 0, ""
        for _ in range(count):
            event = TenantRetired(tenant="red")
            stored = StoredEvent(event.TYPE, "red", msgspec.Raw(encode_event(event)))
            record = Record(new_id(), seq + 1, last, "w", 1, {}, pack([stored]))
            self.broker.append(ACCESS, encode(record))
            seq, last = record.seq, record.id

    def watchdog(self) -> Watchdog:
        return Watchdog(MemoryLog(self.broker), lambda: self.lanes.held.values())

    async def until(self, partition: int, answers: int) -> list[str]:
        async with asyncio.timeout(PATIENCE_S):
            lane = self.lanes.held[partition]
            while len(lane.state.answers) < answers or lane.inbox.pending:
                await asyncio.sleep(0.005)
        return list(lane.state.answers)


@pytest.fixture
async def shell() -> AsyncIterator[Shell]:
    made = Shell()
    yield made
    await made.lanes.stop()


async def test_a_lane_is_run_as_long_as_it_is_held(shell: Shell) -> None:
    await shell.lanes.start()
    offsets = await shell.lanes.assign({0, 2})
    await asyncio.sleep(0)
    assert set(offsets) == {TP("commands", 0), TP("commands", 2)}
    assert sorted(shell.held) == [0, 2]
    await shell.lanes.assign({2, 3})
    await asyncio.sleep(0)
    assert sorted(shell.held) == [2, 3]
    assert sorted(shell.lanes.held) == [2, 3]
    assert await shell.lanes.deliver(TP("commands", 0), 0, command("c")) == "old"


async def test_a_lane_gets_access_before_any_other_input(shell: Shell) -> None:
    shell.grant(3)
    shell.broker.append(TP("commands", 1), command("c"))
    await shell.lanes.start()
    await shell.lanes.assign({1})
    assert await shell.lanes.deliver(TP("commands", 1), 0, command("c")) == "ok"
    answers = await shell.until(1, 4)
    assert answers == ["access/0/1/0", "access/0/2/0", "access/0/3/0", "c"]
    assert shell.lanes.ready.is_set()


async def test_an_input_that_names_more_of_access_than_the_lane_has_waits(shell: Shell) -> None:
    await shell.lanes.start()
    await shell.lanes.assign({1})
    early = command("early", access_next=2)
    assert await shell.lanes.deliver(TP("commands", 1), 0, early) == "ok"
    assert not shell.lanes.is_open(1)
    shell.grant(2)
    assert await shell.until(1, 3) == ["access/0/1/0", "access/0/2/0", "early"]
    assert shell.lanes.is_open(1)


async def test_an_input_does_not_wait_for_records_that_access_does_not_hold(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.hosting.access_feed.POLL_S", 0.01)
    shell.grant(1)
    await shell.lanes.start()
    await shell.lanes.assign({1})
    await shell.until(1, 1)
    assert await shell.lanes.deliver(TP("commands", 1), 0, command("lost", access_next=9)) == "ok"
    assert await shell.until(1, 2) == ["access/0/1/0", "lost"]


async def test_a_lane_that_is_assigned_again_gets_only_new_records_of_access(shell: Shell) -> None:
    shell.grant(2)
    await shell.lanes.start()
    await shell.lanes.assign({1})
    await shell.until(1, 2)
    await shell.lanes.assign(set())
    await shell.lanes.assign({1, 3})
    await shell.until(3, 2)
    await shell.until(1, 2)
    await asyncio.sleep(0.05)
    assert shell.lanes.held[1].state.problems() == []
    assert len(shell.lanes.held[1].state.answers) == 2


async def test_an_input_that_lost_its_tail_stops_the_take_over(shell: Shell) -> None:
    commands = TP("commands", 0)
    await shell.lanes.start()
    await shell.lanes.assign({0})
    for n in range(3):
        offset = shell.broker.append(commands, command(f"c{n}"))
        await shell.lanes.deliver(commands, offset, command(f"c{n}"))
    await shell.until(0, 3)
    await shell.lanes.assign(set())
    cut_tail(shell.broker, commands, 1)
    with pytest.raises(TailLost, match="shorter"):
        await shell.lanes.assign({0})


async def test_records_that_retention_has_removed_are_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.bus.hosting.lanes.LOSSY_INPUTS", {"commands"})
    shell, commands = Shell(), TP("commands", 0)
    await shell.lanes.start()
    await shell.lanes.assign({0})
    for n in range(5):
        shell.broker.append(commands, command(f"c{n}"))
    await shell.lanes.deliver(commands, 0, command("c0"))
    await shell.until(0, 1)
    await shell.lanes.assign(set())
    shell.broker.trim(commands, 3)
    assert (await shell.lanes.assign({0}))[commands] == 3
    for n in (3, 4):
        assert await shell.lanes.deliver(commands, n, command(f"c{n}")) == "ok"
    assert await shell.until(0, 3) == ["c0", "c3", "c4"]
    await shell.lanes.stop()


async def test_an_input_that_begins_behind_the_next_record_stops_the_lane(shell: Shell) -> None:
    commands = TP("commands", 0)
    for n in range(5):
        shell.broker.append(commands, command(f"c{n}"))
    await shell.lanes.start()
    await shell.lanes.assign({0})
    await shell.lanes.deliver(commands, 0, command("c0"))
    await shell.until(0, 1)
    await shell.lanes.assign(set())
    shell.broker.trim(commands, 1)
    assert (await shell.lanes.assign({0}))[commands] == 1
    await shell.lanes.assign(set())
    shell.broker.trim(commands, 3)
    with pytest.raises(TailLost, match="commands-0 begins at 3, and .* has not read 1 to 2"):
        await shell.lanes.assign({0})


async def test_an_input_that_grows_unread_is_detected(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.hosting.watchdog.CHECK_EVERY_S", 0.01)
    monkeypatch.setattr("shared.bus.hosting.watchdog.STALLED_S", 0.05)
    await shell.lanes.assign({0})
    shell.broker.append(TP("commands", 0), command("c"))
    with pytest.raises(Stalled, match="commands-0"):
        await asyncio.wait_for(shell.watchdog().run(), PATIENCE_S)


@pytest.mark.parametrize("lost", [TP("commands", 0), TP("admission", 0)])
async def test_an_idle_lane_notices_that_a_log_became_shorter(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, lost: TP
) -> None:
    await shell.lanes.start()
    await shell.lanes.assign({0})
    offset = shell.broker.append(TP("commands", 0), command("c"))
    await shell.lanes.deliver(TP("commands", 0), offset, command("c"))
    await shell.until(0, 1)
    monkeypatch.setattr("shared.bus.hosting.watchdog.CHECK_EVERY_S", 0.01)
    monkeypatch.setattr("shared.bus.logs.bounds.POLL_S", 0.01)
    cut_tail(shell.broker, lost, 0)
    with pytest.raises(TailLost, match=lost.topic):
        await asyncio.wait_for(shell.watchdog().run(), PATIENCE_S)


class Faulty(SeatDecider):
    """Raises on commands that ask for it: in `decide`, or in the fold of what it decided."""

    def decide(self, state: Seats, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            if getattr(item.message, "reason", "") == "raise":
                raise KeyError("a defect")
        yield from super().decide(state, inputs, now)


async def test_a_lane_that_is_halted_says_so_and_the_others_go_on() -> None:
    shell = Shell(Faulty())
    for n in range(FLOOD):
        shell.broker.append(TP("commands", 1), command(f"bad{n}", reason="raise"))
    for partition in (0, 1):
        shell.broker.append(TP("commands", partition), command("good"))
    await shell.lanes.start()
    await shell.lanes.assign({0, 1})
    for partition in (1, 0):
        for entry in shell.broker.entries(TP("commands", partition)):
            await shell.lanes.deliver(TP("commands", partition), entry.offset, entry.value)
    async with asyncio.timeout(PATIENCE_S):
        while not shell.lanes.halted:
            await asyncio.sleep(0.005)
    assert await shell.until(0, answers=1) == ["good"]
    (partition, reason) = next(iter(shell.lanes.halted.items()))
    assert partition == 1 and "commands" not in str(reason) and "in a row" in str(reason)
    assert list(shell.lanes.held) == [0] and not shell.lanes.ready.is_set()
    assert await shell.lanes.deliver(TP("commands", 1), 99, command("more")) == "old"
    assert shell.lanes.is_open(1)
    async with asyncio.timeout(PATIENCE_S):
        while shell.held != [0]:
            await asyncio.sleep(0.005)
    await shell.lanes.assign({0})
    await shell.lanes.stop()


async def test_a_ledger_that_cannot_be_folded_halts_its_lane_at_the_start(shell: Shell) -> None:
    record = Record("a", 1, "", "w", 1, {}, pack([]))
    unknown = encode(record).replace(
        b'"ev":[]', b'"ev":[{"type":"of.tomorrow.v9","subject":"s","data":{}}]'
    )
    shell.broker.append(TP("admission", 3), unknown)
    await shell.lanes.start()
    offsets = await shell.lanes.assign({2, 3})
    assert set(offsets) == {TP("commands", 2)}
    assert list(shell.lanes.halted) == [3] and list(shell.lanes.held) == [2]
    assert not shell.lanes.ready.is_set()


async def test_the_last_fact_of_an_idle_lane_is_marked_without_the_watchdog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.hosting.watchdog.CHECK_EVERY_S", 10 * PATIENCE_S)
    shell = Shell(folder=tmp_path)
    await shell.lanes.start()
    await shell.lanes.assign({1})
    for number in range(5):
        await shell.lanes.deliver(TP("commands", 1), number, command(f"c{number}"))
        await shell.until(1, number + 1)
    async with asyncio.timeout(PATIENCE_S):
        while shell.snapshots(1).marked() != shell.lanes.held[1].cursor:
            await asyncio.sleep(0.005)
    await shell.lanes.stop()
