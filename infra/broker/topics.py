"""Creates the topics of the contracts, the users and their rights; idempotent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError
from pydantic import Field

from infra.security import acls
from shared.bus.authentication import check_authentication
from shared.connection import Connection
from shared.contracts.topics import TOPICS, TopicSpec
from shared.ledger.errors import Forbidden
from shared.settings import Settings, read_settings

BROKERS_DEFAULT = -1
"""Number of replicas that the broker chooses (its `default.replication.factor`)."""
TIMEOUT_S = 60.0
RETRY_S = 0.2
KEEPS_ALL = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Settings of a topic of which no record is ever removed."""


class WrongTopic(SystemExit):
    """A topic exists with settings with which Berth would be wrong or lose data."""


class NoBroker(SystemExit):
    """The broker does not answer, or refuses the credentials."""


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
    specs = tuple(specs)
    replicas = BROKERS_DEFAULT if durable else 1
    wanted = {spec.name: (1 if spec.single_partition else partitions) for spec in specs}
    admin = connect(connection)
    try:
        existing = _partitions(admin, wanted)
        _check(existing, wanted)
        if durable:
            _check_retention(admin, [spec for spec in specs if spec.name in existing])
        missing = [
            NewTopic(spec.name, wanted[spec.name], replicas, topic_configs=config(spec, durable))
            for spec in specs
            if spec.name not in existing
        ]
        if missing:
            _create(admin, missing)
        return [topic.name for topic in missing]
    finally:
        admin.close()


def connect(connection: Connection) -> KafkaAdminClient:
    """Return an admin client once the broker answers. Raises NoBroker."""
    ends = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return KafkaAdminClient(**connection.kafka_python(), client_id="berth-infra")
        except KafkaError as error:
            if time.monotonic() > ends:
                raise NoBroker(
                    f"{connection.servers}: no answer of Kafka within {TIMEOUT_S:.0f} s: {error}"
                ) from None
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
            raise WrongTopic(
                f"topic {name} has {count} partitions, not {wanted[name]}; they cannot be changed"
            )


def _check_retention(admin: KafkaAdminClient, specs: Iterable[TopicSpec]) -> None:
    """Raise WrongTopic for a ledger of which the broker would remove records."""
    kept = [spec.name for spec in specs if spec.retention_ms < 0]
    if not kept:
        return
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in kept]
    answer = admin.describe_configs(resources, config_filter="all")["topic"]
    for name in kept:
        for setting, needed in KEEPS_ALL.items():
            value = answer[name][setting]["value"]
            if value != needed:
                raise WrongTopic(
                    f"topic {name}: {setting} is {value}; must be {needed}, "
                    "since a ledger keeps every record"
                )


def _create(admin: KafkaAdminClient, topics: list[NewTopic]) -> None:
    try:
        admin.create_topics(topics)
    except TopicAlreadyExistsError:
        # Another process created the topic after the check.
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
    try:
        asyncio.run(check_authentication(settings.connection))
    except Forbidden as error:
        raise NoBroker(str(error)) from None
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
