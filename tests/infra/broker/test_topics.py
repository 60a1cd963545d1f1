from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from infra.broker import kafka, tansu, topics
from infra.broker.retention import WrongTopic, config, kept_ms
from infra.machine.process import free_ports, is_open
from shared.contracts.topics import (
    TOPICS,
    TopicSpec,
    submissions,
    tenant_answers,
    tenant_requests,
    tenant_topics,
)
from shared.process.connection import Connection

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
    with pytest.raises(WrongTopic, match="has 4 partitions, not 8"):
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


def test_prompts_are_kept_as_long_as_it_is_set(broker: Connection) -> None:
    topics.create(broker, 4, broker.idempotent)
    topics.create(broker, 4, broker.idempotent, [tenant_requests("ada")], kept_ms(48))
    assert _settings(broker, "requests.ada")["retention.ms"] == "172800000"
    topics.create(broker, 4, broker.idempotent, [tenant_answers("ada")])
    requests = _settings(broker, "llm.requests")
    assert requests["retention.ms"] == _settings(broker, "answers.ada")["retention.ms"]
    assert requests.get("segment.ms") == ("10800000" if broker.idempotent else None)


def test_a_start_corrects_topics_of_an_earlier_release(broker: Connection) -> None:
    if not broker.idempotent:
        pytest.skip("the embedded broker keeps no topic over a start")
    earlier = TopicSpec("llm.requests", "ledgered", -1, True)
    admin = topics.connect(broker)
    admin.delete_topics(["llm.requests"])
    admin.close()
    topics.create(broker, 4, True, [earlier, submissions("old")])
    settings = topics.TopicSettings(
        kafka=broker.servers,
        kafka_ca=broker.ca,
        kafka_certificate=broker.certificate,
        prompts_kept_h=2,
        partitions=4,
    )
    topics.bring_up_to_date(settings)
    assert _settings(broker, "llm.requests")["retention.ms"] == "7200000"
    assert _settings(broker, "llm.requests")["segment.ms"] == "900000"
    for spec in tenant_topics("old"):
        expected = 7_200_000 if spec.holds_prompts else spec.retention_ms
        assert _settings(broker, spec.name)["retention.ms"] == str(expected)
    topics.bring_up_to_date(settings.model_copy(update={"prompts_kept_h": 24.0}))
    assert _settings(broker, "answers.old")["retention.ms"] == "86400000"


def _settings(broker: Connection, topic: str) -> dict[str, str]:
    admin = topics.connect(broker)
    answer = admin.describe_configs(
        [ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="dynamic"
    )
    admin.close()
    return {name: entry["value"] for name, entry in answer["topic"][topic].items()}


def test_a_topic_with_retention_has_its_age() -> None:
    spec = TopicSpec("dead", "public", 7, flush=False)
    assert config(spec, durable=True, prompts_ms=1) == {
        "cleanup.policy": "delete",
        "retention.ms": "7",
    }
