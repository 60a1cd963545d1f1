"""Copies of each topic: what acknowledged records need to survive the loss of one broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from infra.broker.retention import WrongTopic, configs
from shared.contracts.topics import TopicSpec

ACCESS = "access"
"""The ledger that every installation has first."""
REPLICAS = 3
"""Copies where the cluster has as many brokers: one may be lost, and one more be restarted."""
MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"

PartitionDescription: TypeAlias = Mapping[str, Any]


def replicas_of(admin: KafkaAdminClient, requested: int = 0) -> int:
    """Return the copies of new topics: those requested, else three or one per broker.

    An installation keeps what it has while a broker is away. Raises WrongTopic for more than there
    are brokers.
    """
    brokers = len(admin.describe_cluster()["brokers"])
    if requested > brokers:
        raise WrongTopic(
            f"BERTH_KAFKA_REPLICAS: {requested}; the cluster has {brokers} brokers, and each holds "
            "one copy at most"
        )
    present = copies(partitions_of(admin, [ACCESS])).get(ACCESS, 0)
    return requested or max(present, min(REPLICAS, brokers))


def min_in_sync(replicas: int) -> int:
    """Return the copies that a record must have before it is acknowledged."""
    return 2 if replicas >= REPLICAS else 1


def needs_copies(spec: TopicSpec) -> bool:
    """Return whether the loss of an acknowledged record would be one of truth: soft topics
    repeat.
    """
    return spec.kind != "soft"


def replication_config(spec: TopicSpec, replicas: int) -> dict[str, str]:
    return {MIN_ISR: str(min_in_sync(replicas) if needs_copies(spec) else 1)}


def partitions_of(
    admin: KafkaAdminClient, names: Iterable[str]
) -> dict[str, list[PartitionDescription]]:
    """Return the broker's description of each partition, by topic that exists."""
    existing = sorted(set(admin.list_topics()) & set(names))
    described: list[dict[str, Any]] = admin.describe_topics(existing) if existing else []
    return {str(topic.get("name") or topic["topic"]): topic["partitions"] for topic in described}


def copies(topics: Mapping[str, Sequence[PartitionDescription]]) -> dict[str, int]:
    """Return the fewest copies of any partition, by topic."""
    return {name: min(map(_copies, partitions)) for name, partitions in topics.items()}


def _copies(partition: PartitionDescription) -> int:
    return len(partition.get("replica_nodes") or partition.get("replicas") or ())


def check_replication(
    admin: KafkaAdminClient, specs: Iterable[TopicSpec], replicas: int
) -> list[str]:
    """Correct what a topic's settings can, and return the topics that had another value.

    Raises WrongTopic for a topic with fewer copies, or whose last copy may be an old one.
    """
    names = [spec.name for spec in specs if needs_copies(spec)]
    for name, count in copies(partitions_of(admin, names)).items():
        if count < replicas:
            raise WrongTopic(
                f"topic {name}: replication factor is {count}; must be {replicas}, since the loss "
                "of a broker would lose records: add copies with kafka-reassign-partitions, or "
                f"accept the risk with BERTH_KAFKA_REPLICAS={count}"
            )
    desired, wrong = str(min_in_sync(replicas)), []
    for name, present in configs(admin, sorted(set(admin.list_topics()) & set(names))).items():
        if present.get(UNCLEAN, "false") != "false":
            raise WrongTopic(
                f"topic {name}: {UNCLEAN} is {present[UNCLEAN]}; must be false, since a copy that "
                "lacks acknowledged records could become the leader"
            )
        if present.get(MIN_ISR, desired) != desired:
            wrong.append(name)
    if wrong:
        topic = ConfigResourceType.TOPIC
        admin.alter_configs([ConfigResource(topic, n, configs={MIN_ISR: desired}) for n in wrong])
    return wrong
