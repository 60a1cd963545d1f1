"""The shell's ear, over the real lane and the in-memory log."""

from __future__ import annotations

import asyncio

from services.placement.app import decode_report
from services.placement.core.decide import Placement
from services.placement.core.pool.state import Pool
from services.placement.heartbeats import decoded, watch
from shared.bus.clock import boot_ms, now_ms
from shared.bus.lane import Lane, LaneSettings
from shared.bus.memory import MemoryBroker, MemoryLog
from shared.contracts.access import PoolConfigured
from shared.contracts.base import Model
from shared.contracts.reports import Alive, ExecutorReported, Heartbeats, NodeRegistered
from shared.ledger import cloudevents
from shared.ledger.decider import Input
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from tests.services.placement.core.lane import registered

LEASE_S = 1.5


def event(id: str, message: Model) -> bytes:
    data = message.model_dump_json().encode()
    type_ = str(getattr(message, "TYPE", ""))
    return cloudevents.encode(id=id, source="/test", type=type_, data=data, at_ms=now_ms())


def beat(**nodes: str) -> bytes:
    alive = {
        name: Alive(incarnation=incarnation, sent_boot_ms=boot_ms())
        for name, incarnation in nodes.items()
    }
    return event("hb", Heartbeats(executor_id="e1", nodes=alive))


async def open_lane(broker: MemoryBroker) -> Lane[Pool]:
    lane = Lane(
        Placement(),
        0,
        MemoryLog(broker),
        inputs=[TP("reports", 0)],
        decoder=InputDecoder("placement", decode_report),
        settings=LaneSettings(window_ms=1),
    )
    await lane.start()
    return lane


def reported(*reports: NodeRegistered) -> bytes:
    return event("r1", ExecutorReported(executor_id="e1", reports=reports))


async def test_a_node_that_fell_silent_is_lost_and_one_that_beats_is_not() -> None:
    broker = MemoryBroker()
    lane = await open_lane(broker)
    tasks = [asyncio.create_task(lane.run()), asyncio.create_task(watch(lane, MemoryLog(broker)))]
    try:
        settings = PoolConfigured(partition=0, pool="p", lease_s=LEASE_S)
        await lane.offer(Input("access", "a1", settings))
        record = reported(registered("n1"), registered("n2"))
        assert await lane.deliver(TP("reports", 0), 0, record) == "ok"
        async with asyncio.timeout(60):
            while set(lane.state.board.nodes) != {"n1"}:
                broker.append(TP("heartbeats", 0), b"noise")
                broker.append(TP("heartbeats", 0), beat(n1="i1", n2="an older one"))
                await asyncio.sleep(0.1)
    finally:
        await lane.revoke()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_bytes_of_no_report_are_rejected_in_the_ledger() -> None:
    broker = MemoryBroker()
    lane = await open_lane(broker)
    assert await lane.deliver(TP("reports", 0), 0, b"{") == "ok"
    assert (
        await lane.deliver(TP("reports", 0), 1, event("x", Heartbeats(executor_id="e", nodes={})))
        == "ok"
    )
    await lane.poll()
    (entry,) = broker.entries(TP("placement", 0))
    assert entry.value is not None and entry.value.count(b"input.rejected.v1") == 2


def test_what_is_no_heartbeat_is_passed_over() -> None:
    assert decoded(None) is None
    assert decoded(b"{}") is None
    assert decoded(reported(registered("n1"))) is None
    assert decoded(beat(n1="i1")) is not None
