"""Creates the topics of the contracts, the users and their rights; idempotent."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError
from pydantic import Field

from infra.security import acls
from shared.connection import Connection
from shared.contracts.topics import TOPICS, TopicSpec
from shared.settings import Settings, read_settings

TIMEOUT_S = 60.0
RETRY_S = 0.2


class WrongPartitions(SystemExit):
    """A topic exists with another number of partitions, which is fixed at creation."""


class TopicSettings(Settings):
    """Settings of `python -m infra.broker.topics`."""

    data: Path = Path(".")
    durable: bool = True
    kafka_certificate: Path | None = Field(
        default=None, description="The broker's own: who sets it up is above the ACLs"
    )
    kafka_secrets: Path | None = Field(
        default=None, description="Folder of the users' passwords; empty = a plain broker"
    )

    @property
    def connection(self) -> Connection:
        if self.kafka_certificate is None:
            return super().connection
        return Connection(self.kafka, ca=self.kafka_ca, certificate=self.kafka_certificate)


def config(spec: TopicSpec, durable: bool) -> dict[str, str]:
    """Return the configuration of a topic; a broker without a disk has no flush setting."""
    settings = {"cleanup.policy": "delete", "retention.ms": str(spec.retention_ms)}
    if spec.retention_ms < 0:
        settings["retention.bytes"] = "-1"
    if spec.flush and durable:
        settings["flush.messages"] = "1"
    return settings


def create(
    connection: Connection,
    partitions: int,
    durable: bool,
    specs: Iterable[TopicSpec] = tuple(TOPICS.values()),
) -> list[str]:
    """Create the missing topics and return their names; wait for a broker that is starting."""
    wanted = {spec.name: (1 if spec.single_partition else partitions) for spec in specs}
    admin = connect(connection)
    try:
        existing = _partitions(admin, wanted)
        _check(existing, wanted)
        missing = [
            NewTopic(spec.name, wanted[spec.name], 1, topic_configs=config(spec, durable))
            for spec in specs
            if spec.name not in existing
        ]
        if missing:
            _create(admin, missing)
        return [topic.name for topic in missing]
    finally:
        admin.close()


def connect(connection: Connection) -> KafkaAdminClient:
    """Return an admin client once the broker answers."""
    ends = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return KafkaAdminClient(**connection.kafka_python(), client_id="berth-infra")
        except KafkaError:
            if time.monotonic() > ends:
                raise
            time.sleep(RETRY_S)


def _partitions(admin: KafkaAdminClient, wanted: Iterable[str]) -> dict[str, int]:
    names = sorted(set(admin.list_topics()) & set(wanted))
    described = admin.describe_topics(names) if names else []
    return {_name(topic): len(topic["partitions"]) for topic in described}


def _name(topic: dict[str, object]) -> str:
    return str(topic.get("name") or topic["topic"])


def _check(existing: dict[str, int], wanted: dict[str, int]) -> None:
    for name, count in existing.items():
        if count != wanted[name]:
            raise WrongPartitions(
                f"topic {name} has {count} partitions, not {wanted[name]}; they cannot be changed"
            )


def _create(admin: KafkaAdminClient, topics: list[NewTopic]) -> None:
    try:
        admin.create_topics(topics)
    except TopicAlreadyExistsError:
        # Another start made it between our look and our wish.
        for topic in topics:
            _create_one(admin, topic)


def _create_one(admin: KafkaAdminClient, topic: NewTopic) -> None:
    try:
        admin.create_topics([topic])
    except TopicAlreadyExistsError:
        return


def main(environ: dict[str, str]) -> None:
    """Create topics, users and ACLs according to the environment."""
    settings = read_settings(TopicSettings, environ)
    create(settings.connection, settings.partitions, settings.durable)
    if settings.kafka_secrets is not None:
        secure(settings.connection, settings.kafka_secrets)


def secure(connection: Connection, secrets: Path) -> None:
    """Apply the users of `secrets` and the ACLs of `infra.security.acls`."""
    admin = connect(connection)
    try:
        acls.apply(admin, secrets)
    finally:
        admin.close()


if __name__ == "__main__":
    import os

    main(dict(os.environ))
