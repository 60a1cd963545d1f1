"""The watch of heartbeats over the real lane and the in-memory log, on a clock of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from services.placement import heartbeat_log
from services.placement.app import decode_report
from services.placement.core.decide import Placement
from services.placement.core.pool.node import Node
from services.placement.heartbeat_log import decoded_marker
from services.placement.heartbeats import Watcher, next_note_ms, watch
from shared.bus.clock import now_ms
from shared.bus.lane.lane import Lane, LaneSettings
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.base import Event, Model
from shared.contracts.nodes import NodeHeard, NodeLost, NodeSuspected
from shared.contracts.pools import PoolConfigured
from shared.contracts.rejected import InputRejected
from shared.contracts.reports import Alive, ExecutorReported, Heartbeats, NodeRegistered
from shared.ledger import cloudevents
from shared.ledger.decider import Fact, Input
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from tests.harness.flaky_log import FlakyLog
from tests.lost_tail import cut_tail
from tests.patience import PATIENCE_S
from tests.services.placement.core.lane import registered

TOPIC = TP("heartbeats", 0)
LEASE_S = 10.0
LOST_S = 20.0
E = TypeVar("E", bound=Event)


def message(id: str, model: Model) -> bytes:
    data = model.model_dump_json().encode()
    type_ = str(getattr(model, "TYPE", ""))
    return cloudevents.encode(id=id, source="/test", type=type_, data=data, at_ms=now_ms())


class Stage:
    """A lane with nodes, its broker, and a clock that only the test moves."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.now_s = 1000.0
        self.facts: list[Fact] = []
        self.lane = Lane(
            Placement(),
            0,
            MemoryLog(self.broker),
            inputs=[TP("reports", 0)],
            decoder=InputDecoder("placement", decode_report),
            settings=LaneSettings(window_ms=1),
            on_accepted=lambda facts, *_: self.facts.extend(facts),
        )

    async def join(self, *nodes: str) -> None:
        await self.lane.offer(Input("access", "a1", PoolConfigured(**POOL)))
        await self.report(*map(registered, nodes))

    async def report(self, *reports: NodeRegistered) -> None:
        record = message("r1", ExecutorReported(executor_id="e1", reports=reports))
        offset = self.broker.append(TP("reports", 0), record)
        assert await self.lane.deliver(TP("reports", 0), offset, record) == "ok"
        async with asyncio.timeout(PATIENCE_S):
            while not all(self.has_joined(each) for each in reports):
                await asyncio.sleep(0.001)

    def has_joined(self, registration: NodeRegistered) -> bool:
        node = self.lane.state.board.nodes.get(registration.node_id)
        return node is not None and node.incarnation == registration.incarnation

    def watcher(self, log: MemoryLog | FlakyLog | None = None) -> Watcher:
        return Watcher(self.lane, log or MemoryLog(self.broker), clock=lambda: self.now_s)

    def beat(self, *nodes: str, incarnation: str = "i1") -> None:
        alive = Alive(incarnation=incarnation, sent_boot_ms=round(self.now_s * 1000))
        heartbeats = Heartbeats(executor_id="e1", nodes=dict.fromkeys(nodes, alive))
        self.broker.append(TOPIC, message("hb", heartbeats))

    def events(self, kind: type[E]) -> list[E]:
        return [fact.event for fact in self.facts if isinstance(fact.event, kind)]

    def node(self, node_id: str) -> Node:
        return self.lane.state.board.nodes[node_id]

    def markers(self) -> int:
        entries = self.broker.entries(TOPIC)
        return sum(decoded_marker(entry.value) is not None for entry in entries)

    async def after(
        self, watcher: Watcher, seconds: float, *, beats: tuple[str, ...] = ("no-such-node",)
    ) -> None:
        """Let seconds pass, one look in each, with heartbeats before it that end its wait."""
        for _ in range(round(seconds)):
            self.now_s += 1
            self.beat(*beats)
            await watcher.step()


POOL = {"partition": 0, "pool": "p", "lease_s": LEASE_S}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    await made.lane.start()
    running = asyncio.create_task(made.lane.run())
    await made.join("n1", "n2")
    yield made
    await made.lane.revoke()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def watching(stage: Stage, log: MemoryLog | FlakyLog | None = None) -> AsyncIterator[Watcher]:
    watcher = stage.watcher(log)
    await watcher.start()
    try:
        yield watcher
    finally:
        await watcher.stop()


async def test_a_silent_node_is_suspected_then_lost_and_one_that_beats_is_not(stage: Stage) -> None:
    async with watching(stage) as watcher:
        stage.broker.append(TOPIC, b"noise")
        await stage.after(watcher, LEASE_S - 1, beats=("n1",))
        assert stage.markers() == 0, "no marker while no node may be silent"
        await stage.after(watcher, 2, beats=("n1",))
        (suspected,) = stage.events(NodeSuspected)
        assert suspected.node_id == "n2" and suspected.silent_ms >= LEASE_S * 1000
        await stage.after(watcher, LOST_S - LEASE_S - 3, beats=("n1",))
        assert not stage.events(NodeLost)
        await stage.after(watcher, 3, beats=("n1",))
        (lost,) = stage.events(NodeLost)
        assert lost.node_id == "n2" and lost.silent_s >= LOST_S
        assert list(stage.lane.state.board.nodes) == ["n1"]


async def test_a_suspected_node_is_heard_again(stage: Stage) -> None:
    async with watching(stage) as watcher:
        await stage.after(watcher, LEASE_S + 1, beats=("n1",))
        await stage.after(watcher, 1, beats=("n1", "n2"))
        assert [event.node_id for event in stage.events(NodeHeard)] == ["n2"]
        assert stage.node("n2").silence is None
        await stage.after(watcher, LOST_S - 2, beats=("n1", "n2"))
        assert not stage.events(NodeLost)


class PausedLog(MemoryLog):
    """A log whose reads return nothing while it is paused, as while a broker is away."""

    paused = False

    async def feed(self, start, *, lossy=False):  # type: ignore[no-untyped-def]
        feed = await super().feed(start, lossy=lossy)
        poll = feed.poll

        async def paused_poll(wait_s, max_records=500):  # type: ignore[no-untyped-def]
            await asyncio.sleep(0)
            return {} if self.paused else await poll(wait_s, max_records)

        feed.poll = paused_poll  # type: ignore[method-assign]
        return feed


async def test_an_empty_poll_is_no_silence(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """[R12] Heartbeats are in the log, and reads return nothing for longer than a loss takes."""
    monkeypatch.setattr(heartbeat_log, "MARKER_WAIT_S", 0.01)
    log = PausedLog(stage.broker)
    async with watching(stage, log) as watcher:
        log.paused = True
        await stage.after(watcher, 3 * LOST_S, beats=("n1", "n2"))
        assert stage.markers() > 0, "it tried to read to the end"
        log.paused = False
        await stage.after(watcher, 2)
        assert not stage.events(NodeLost) and not stage.events(NodeSuspected)


async def test_a_marker_that_may_be_lost_proves_nothing(stage: Stage) -> None:
    log = FlakyLog(MemoryLog(stage.broker))
    async with watching(stage, log) as watcher:
        stage.now_s += LOST_S + 1
        log.accidents.extend(["lost_request", "late", "lost_ack"])
        await stage.after(watcher, 3)
        assert not stage.events(NodeLost)
        await stage.after(watcher, 2)
        assert len(stage.events(NodeLost)) == 2


async def test_time_that_passes_while_the_end_is_read_is_no_silence(stage: Stage) -> None:
    """[R12] A heartbeat that follows the marker is not read yet: the moment before it counts."""
    log = FlakyLog(MemoryLog(stage.broker))

    async def let_time_pass(_: TP) -> None:
        stage.now_s += LOST_S

    async with watching(stage, log) as watcher:
        await stage.after(watcher, LEASE_S - 1)
        log.before_append = let_time_pass
        await stage.after(watcher, 1)
        assert stage.markers() == 1 and not stage.events(NodeLost)


async def test_a_lost_tail_lets_all_counts_begin_anew(stage: Stage) -> None:
    """[R13] Acknowledged heartbeats are gone, and with them the proof of every silence."""
    for _ in range(5):
        stage.beat("n1")
    async with watching(stage) as watcher:
        await stage.after(watcher, LEASE_S + 1, beats=("n1",))
        cut_tail(stage.broker, TOPIC, 3)
        await stage.after(watcher, 1)
        assert stage.node("n2").silence is not None
        assert stage.node("n2").silence.silent_ms == 0  # type: ignore[union-attr]
        await stage.after(watcher, LOST_S - 2)
        assert not stage.events(NodeLost)
        await stage.after(watcher, 4)
        assert len(stage.events(NodeLost)) == 2


async def test_a_restart_goes_on_with_the_silence_in_the_ledger(stage: Stage) -> None:
    """Rule 15: placement restarts again and again, and the node is lost all the same."""
    async with watching(stage) as watcher:
        await stage.after(watcher, LEASE_S + 1, beats=("n1",))
    looks = 0
    while not stage.events(NodeLost):
        async with watching(stage) as watcher:
            await stage.after(watcher, LOST_S / 4 + 1, beats=("n1",))
        looks += 1
        assert looks <= 3


async def test_a_restart_reads_what_was_sent_since_the_last_note(stage: Stage) -> None:
    """[R14]"""
    async with watching(stage) as watcher:
        await stage.after(watcher, LEASE_S + 1, beats=("n1",))
    stage.beat("n2")
    async with watching(stage) as watcher:
        await stage.after(watcher, LOST_S - LEASE_S, beats=("n1",))
        assert not stage.events(NodeLost)
        assert [event.node_id for event in stage.events(NodeHeard)] == ["n2"]


async def test_an_offset_beyond_the_log_does_not_go_on_with_the_count(stage: Stage) -> None:
    stage.broker.append(TOPIC, b"noise")
    async with watching(stage) as watcher:
        await stage.after(watcher, LEASE_S + 1, beats=("n1",))
    cut_tail(stage.broker, TOPIC, 0)
    async with watching(stage) as watcher:
        await stage.after(watcher, LOST_S - 2, beats=("n1",))
        assert not stage.events(NodeLost)


async def test_a_new_incarnation_is_heard_when_it_joins(stage: Stage) -> None:
    async with watching(stage) as watcher:
        await stage.after(watcher, LEASE_S - 1, beats=("n1",))
        await stage.report(registered("n2", incarnation="i2"))
        await stage.after(watcher, LEASE_S - 1, beats=("n1",))
        assert not stage.events(NodeSuspected)


async def test_the_watch_runs_until_it_is_cancelled(stage: Stage) -> None:
    task = asyncio.create_task(watch(stage.lane, MemoryLog(stage.broker)))
    stage.beat("n1")
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_bytes_of_no_report_are_rejected_in_the_ledger(stage: Stage) -> None:
    reports = TP("reports", 0)
    for value in (b"{", message("x", Heartbeats(executor_id="e", nodes={}))):
        offset = stage.broker.append(reports, value)
        assert await stage.lane.deliver(reports, offset, value) == "ok"
    async with asyncio.timeout(PATIENCE_S):
        while len(stage.events(InputRejected)) < 2:
            await asyncio.sleep(0.001)


def test_silence_is_noted_now_and_then_and_not_for_ever_where_workers_are_kept() -> None:
    assert next_note_ms(0, 773_750) == 0
    assert next_note_ms(30_000, 773_750) == 60_000
    assert next_note_ms(2_000, 8_000) == 4_000
    assert next_note_ms(30_000, float("inf")) == 60_000
    assert next_note_ms(60_000, float("inf")) == float("inf")
