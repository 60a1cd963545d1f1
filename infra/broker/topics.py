"""Creates the topics of the contracts, the users and their rights; idempotent."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError
from pydantic import Field

from infra.broker.archive_begin import begin_archive
from infra.broker.replication import (
    check_replication,
    partitions_of,
    replicas_of,
    replication_config,
)
from infra.broker.retention import (
    WrongTopic,
    check_retention,
    config,
    correct_retention,
    correct_segments,
    kept_ms,
    prompts_ms_of,
)
from infra.security import acls
from infra.security.broker_quotas import TenantQuota, apply_quotas
from shared.bus.archive.archiving import RUNBOOK
from shared.bus.logs.authentication import check_authentication
from shared.contracts.topics import (
    ARCHIVED,
    PROMPTS_KEPT_H,
    TOPICS,
    TopicSpec,
    submissions,
    tenant_topics,
)
from shared.ledger.errors import ArchiveUnreachable, Forbidden
from shared.process.connection import Connection
from shared.process.settings import Settings, read_settings

TIMEOUT_S = 60.0
RETRY_S = 0.2
SUBMISSIONS = submissions("").name


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
    prompts_kept_h: float = Field(
        default=PROMPTS_KEPT_H,
        ge=1,
        le=8760,
        description="Hours for which topics keep prompts and answers of LLM requests",
    )
    kafka_replicas: int = Field(
        default=0,
        ge=0,
        le=9,
        description="Copies of each topic; 0: three, or one per broker where there are fewer",
    )

    tenant_producer_mib_per_s: float = Field(
        default=16, gt=0, le=1e6, description="MiB that a tenant's Kafka user may write a second"
    )
    tenant_request_percentage: float = Field(
        default=50,
        gt=0,
        le=1e6,
        description="Percent of one thread of a broker that requests of a tenant's user may use",
    )

    @property
    def tenant_quota(self) -> TenantQuota:
        """Quota of users without one of their own, which are those of tenants and of the site."""
        return TenantQuota(self.tenant_producer_mib_per_s * 2**20, self.tenant_request_percentage)

    @property
    def connection(self) -> Connection:
        if self.kafka_certificate is None:
            return super().connection
        return Connection(self.kafka, ca=self.kafka_ca, certificate=self.kafka_certificate)


def create(
    connection: Connection,
    partitions: int,
    durable: bool,
    specs: Iterable[TopicSpec] = tuple(TOPICS.values()),
    prompts_ms: int | None = None,
    replicas: int = 0,
) -> list[str]:
    """Create the missing topics and return their names; wait for a broker that is starting.

    Topics of prompts keep them for `prompts_ms`, by default as long as `llm.requests` does.
    """
    specs = tuple(specs)
    desired = {spec.name: (1 if spec.single_partition else partitions) for spec in specs}
    admin = connect(connection)
    try:
        described = partitions_of(admin, desired)
        existing = {name: len(described[name]) for name in described}
        _check(existing, desired)
        if durable:
            check_retention(admin, [spec for spec in specs if spec.name in existing])
        if prompts_ms is None:
            prompts_ms = prompts_ms_of(admin, admin.list_topics())
        replicas = replicas_of(admin, replicas) if durable else 1
        missing = [
            NewTopic(
                spec.name,
                desired[spec.name],
                replicas,
                topic_configs=config(spec, durable, prompts_ms)
                | (replication_config(spec, replicas) if durable else {}),
            )
            for spec in specs
            if spec.name not in existing
        ]
        if missing:
            _create(admin, missing)
        return [topic.name for topic in missing]
    finally:
        admin.close()


def connect(connection: Connection) -> KafkaAdminClient:
    """Return an admin client once the broker answers and lets the user in. Raises NoBroker.

    Kafka answers the request for a new user before all its brokers know of it.
    """
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


def _check(existing: dict[str, int], desired: dict[str, int]) -> None:
    for name, count in existing.items():
        if count != desired[name]:
            raise WrongTopic(
                f"topic {name} has {count} partitions, not {desired[name]}; they cannot be changed"
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
    bring_up_to_date(settings)
    if settings.kafka_secrets is not None:
        secure(settings.connection, settings.kafka_secrets, settings.tenant_quota)
    try:
        begin_archive(settings.connection, settings.archive, settings.partitions)
    except ArchiveUnreachable as error:
        # Services with a snapshot start without it, and the publisher says that it is away.
        sys.stderr.write(f"archive: {error}; see {RUNBOOK}\n")


def bring_up_to_date(settings: TopicSettings) -> None:
    """Create what is missing, also of tenants of an earlier release; correct and check the rest.

    Raises WrongTopic for a topic that would lose records, with setting, value and rule.
    """
    connection, prompts_ms = settings.connection, kept_ms(settings.prompts_kept_h)
    partitions, durable = settings.partitions, settings.durable
    replicas = settings.kafka_replicas
    create(connection, partitions, durable, prompts_ms=prompts_ms, replicas=replicas)
    admin = connect(connection)
    try:
        existing = admin.list_topics()
        names = [name for name in existing if name.startswith(SUBMISSIONS)]
        specs = [spec for name in names for spec in tenant_topics(name.removeprefix(SUBMISSIONS))]
        if durable:
            known = [spec.name for spec in (*TOPICS.values(), *specs) if spec.holds_prompts]
            correct_retention(admin, sorted(set(known) & set(existing)), prompts_ms)
            correct_segments(admin, sorted(set(ARCHIVED) & set(existing)))
            check_replication(admin, (*TOPICS.values(), *specs), replicas_of(admin, replicas))
    finally:
        admin.close()
    if specs:
        create(connection, partitions, durable, specs, prompts_ms, replicas)


def secure(connection: Connection, secrets: Path, quota: TenantQuota | None = None) -> None:
    """Apply the users of `secrets`, the ACLs of `infra.security.acls`, and a quota if given."""
    admin = connect(connection)
    try:
        acls.apply(admin, secrets)
        if quota is not None:
            apply_quotas(admin, quota)
    finally:
        admin.close()


if __name__ == "__main__":
    import os

    main(dict(os.environ))
