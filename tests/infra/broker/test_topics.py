from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from infra.broker import kafka, tansu, topics
from infra.machine.process import free_ports, is_open
from shared.connection import Connection
from shared.contracts.topics import TOPICS, TopicSpec, submissions

pytestmark = pytest.mark.process


@pytest.fixture(
    scope="module",
    params=["embedded", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.parts])],
)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connection]:
    (port,) = free_ports(1)
    folder = tmp_path_factory.mktemp("broker")
    if request.param == "kafka":
        if kafka.missing():
            pytest.skip(kafka.missing())
        running = kafka.start(folder, port)
    else:
        running = tansu.start(folder, port)
    is_kafka = request.param == "kafka"
    yield kafka.root(folder) if is_kafka else Connection(f"127.0.0.1:{port}", idempotent=False)
    running.stop()
    assert not is_open(port)
    shutil.rmtree(folder)


def test_every_topic_of_the_contracts_is_made_once(broker: Connection) -> None:
    assert sorted(topics.create(broker, 4, broker.idempotent)) == sorted(TOPICS)
    assert topics.create(broker, 4, broker.idempotent) == []


def test_a_topic_has_one_partition_per_lane_and_access_has_one(broker: Connection) -> None:
    topics.create(broker, 4, broker.idempotent)
    admin = topics.connect(broker)
    created = {t["name"]: len(t["partitions"]) for t in admin.describe_topics(list(TOPICS))}
    admin.close()
    assert created == {name: 1 if spec.single_partition else 4 for name, spec in TOPICS.items()}


def test_the_number_of_lanes_cannot_be_changed_later(broker: Connection) -> None:
    topics.create(broker, 4, broker.idempotent)
    with pytest.raises(topics.WrongTopic, match="has 4 partitions, not 8"):
        topics.create(broker, 8, broker.idempotent)


def test_a_topic_of_one_tenant_is_made_when_the_tenant_comes(broker: Connection) -> None:
    assert topics.create(broker, 4, broker.idempotent, [submissions("acme")]) == [
        "submissions.acme"
    ]


def test_only_a_broker_with_a_disk_flushes_each_record(broker: Connection) -> None:
    topics.create(broker, 4, broker.idempotent)
    settings = _settings(broker, "placement")
    assert settings["retention.ms"] == "-1"
    assert settings.get("flush.messages") == ("1" if broker.idempotent else None)
    assert _settings(broker, "heartbeats")["retention.ms"] == "86400000"


def _settings(broker: Connection, topic: str) -> dict[str, str]:
    admin = topics.connect(broker)
    answer = admin.describe_configs(
        [ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="dynamic"
    )
    admin.close()
    return {name: entry["value"] for name, entry in answer["topic"][topic].items()}


def test_a_topic_with_retention_has_its_age() -> None:
    spec = TopicSpec("dead", "public", 7, flush=False)
    assert topics.config(spec, durable=True) == {"cleanup.policy": "delete", "retention.ms": "7"}
