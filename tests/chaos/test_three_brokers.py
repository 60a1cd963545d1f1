"""Three real brokers under load: one dies, one loses its disk, leadership moves; nothing is lost.

BERTH_BROKER_KILLS is the number of faults.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from infra.broker import kafka, topics
from infra.broker.replication import MIN_ISR, copies, partitions_of
from infra.broker.retention import WrongTopic, configs
from shared.bus.hosting.lanes import Lanes
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.topics import TOPICS, TopicSpec
from shared.ledger import cloudevents
from tests.broker_clients import read_to_end
from tests.chaos.seat_lane import INPUT, LEDGER, feed, lane, put
from tests.harness.ledger import command, fold
from tests.patience import PATIENCE_S
from tests.three_brokers import ThreeBrokers

pytestmark = [pytest.mark.kafka, pytest.mark.parts]

FAULTS = int(os.environ.get("BERTH_BROKER_KILLS", "3"))
NAMES = ("admission", "commands", "placement", "access", "telemetry")
SPECS = [TOPICS[name] for name in NAMES]
MORE = 20
"""Acknowledged commands between two faults."""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    if kafka.missing():
        pytest.skip(kafka.missing())
    cluster = ThreeBrokers(tmp_path_factory.mktemp("brokers"))
    try:
        cluster.start_all()
        topics.create(cluster.connection, 1, True, SPECS)
        yield cluster
    finally:
        cluster.stop_all()


def test_topics_have_three_copies_and_ledgers_two_before_an_acknowledgement(
    brokers: ThreeBrokers,
) -> None:
    admin = topics.connect(brokers.connection)
    try:
        assert set(copies(partitions_of(admin, NAMES)).values()) == {3}
        in_sync = {name: settings[MIN_ISR] for name, settings in configs(admin, NAMES).items()}
    finally:
        admin.close()
    assert in_sync == {**dict.fromkeys(NAMES, "2"), "telemetry": "1"}


def settings_of(brokers: ThreeBrokers, replicas: int = 0) -> topics.TopicSettings:
    return topics.TopicSettings(
        kafka=brokers.connection.servers, partitions=1, kafka_replicas=replicas
    )


def test_a_topic_with_fewer_copies_ends_the_start_with_its_name_and_the_rule(
    brokers: ThreeBrokers,
) -> None:
    single = TopicSpec("failslow", "ledger", -1, True)
    topics.create(brokers.connection, 1, True, [single], replicas=1)
    with pytest.raises(WrongTopic, match="topic failslow: replication factor is 1; must be 3"):
        topics.bring_up_to_date(settings_of(brokers))
    with pytest.raises(WrongTopic, match="BERTH_KAFKA_REPLICAS: 5; the cluster has 3 brokers"):
        topics.bring_up_to_date(settings_of(brokers, 5))
    admin = topics.connect(brokers.connection)
    admin.delete_topics(["failslow"])
    admin.close()


async def full(brokers: ThreeBrokers) -> None:
    """Wait until every copy of both topics has everything."""
    async with asyncio.timeout(PATIENCE_S):
        for tp in (LEDGER, INPUT):
            while await asyncio.to_thread(brokers.in_sync, tp) < 3:
                await asyncio.sleep(0.3)


async def fault(brokers: ThreeBrokers, number: int) -> None:
    """Let the leader of the ledger die, the leader of its input lose its disk, or others lead."""
    await full(brokers)
    kind = ("kill", "disk", "lead")[number % 3]
    if kind == "lead":
        await asyncio.to_thread(brokers.elect_preferred)
        return
    victim = await asyncio.to_thread(brokers.leader_of, LEDGER if kind == "kill" else INPUT)
    lose = brokers.kill if kind == "kill" else brokers.lose_disk
    await asyncio.to_thread(lose, victim)
    await asyncio.sleep(2)
    await asyncio.to_thread(brokers.restart, victim)


async def test_nothing_acknowledged_is_lost_under_load(
    brokers: ThreeBrokers, record_property: Callable[[str, object], None]
) -> None:
    connection = brokers.connection
    out = KafkaLog(connection)
    await out.start()
    lanes = Lanes(lambda _: lane(connection), KafkaLog(connection), follows_access=False)
    await lanes.start()
    await lanes.assign([0])
    feeding = asyncio.ensure_future(feed(lanes, connection))
    acknowledged: list[str] = []
    acknowledged_at_s = [time.monotonic()]

    async def send() -> None:
        while True:
            name = f"c{len(acknowledged)}"
            await put(out, command(name))
            acknowledged.append(name)
            acknowledged_at_s.append(time.monotonic())
            await asyncio.sleep(0.01)

    sending = asyncio.ensure_future(send())

    async def go_on() -> None:
        due = len(acknowledged) + MORE
        async with asyncio.timeout(PATIENCE_S):
            while len(acknowledged) < due:
                assert not sending.done(), sending
                await asyncio.sleep(0.1)

    for number in range(FAULTS):
        await go_on()
        await fault(brokers, number)
    await go_on()
    sending.cancel()
    await asyncio.wait({sending})
    record_property("faults", FAULTS)
    record_property("acknowledged", len(acknowledged))
    pauses_s = [end - begin for begin, end in pairwise(acknowledged_at_s)]
    record_property("longest_pause_s", round(max(pauses_s), 2))
    await full(brokers)
    log = KafkaLog(connection)
    await log.start()
    sent = Counter(cloudevents.decode(entry.value).id for entry in await read_to_end(log, INPUT))
    assert set(acknowledged) <= sent.keys()
    async with asyncio.timeout(PATIENCE_S):
        # What is pending is in the state before it is in the ledger.
        while sum(lanes.held[0].state.answers.values()) < sent.total():
            assert not feeding.done(), feeding
            await asyncio.sleep(0.1)
        while lanes.held[0].inbox.pending:
            await asyncio.sleep(0.1)
    feeding.cancel()
    await asyncio.wait({feeding})
    await lanes.stop()
    truth = fold(LEDGER, await read_to_end(log, LEDGER))
    await log.stop()
    await out.stop()
    # A sender without an acknowledgement sends again; the decider answers each record once.
    assert truth.answers == dict(sent)
