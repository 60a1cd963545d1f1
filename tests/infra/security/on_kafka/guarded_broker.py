"""A broker with every topic, user and right of Berth, for the tests that try what it refuses."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from infra.broker import kafka, topics
from infra.machine.process import Running
from infra.security import acls, kafka_users, rights
from infra.security.rights import Grant
from shared.contracts.topics import submissions, tenant_events
from shared.process.connection import Connection

MARKS = [
    pytest.mark.parts,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]
"""Marks of each file that uses the fixture `guarded`."""
TENANTS = ("ada", "ada.b")
UNPRIVILEGED = "site.nobody"
"""A user without any right."""


@dataclass(frozen=True)
class Guarded:
    """A running broker and the passwords of its users."""

    running: Running
    folder: Path
    port: int
    passwords: dict[str, str] = field(repr=False)

    @property
    def root(self) -> Connection:
        return kafka.root(self.folder)

    @property
    def grants(self) -> frozenset[Grant]:
        return rights.table().union(*map(rights.of_tenant, TENANTS))

    def connection(self, user: str) -> Connection:
        return Connection(
            f"127.0.0.1:{self.port}", user=user, password=self.passwords[user], ca=self.root.ca
        )

    def admin(self, user: str) -> KafkaAdminClient:
        return KafkaAdminClient(**self.connection(user).kafka_python())


def create_users(root: Connection, secrets: Path) -> dict[str, str]:
    """Create all topics, users and ACLs; return the password of each user."""
    topics.create(root, 1, durable=False)
    for tenant in TENANTS:
        topics.create(root, 1, False, [submissions(tenant), tenant_events(tenant)])
    topics.secure(root, secrets)
    passwords = {user: kafka_users.password(secrets, user) for user in rights.users()}
    passwords[UNPRIVILEGED] = kafka_users.new_password()
    admin = topics.connect(root)
    for tenant in TENANTS:
        passwords[rights.TENANT + tenant] = acls.create_user(admin, tenant)
    acls.set_passwords(admin, {UNPRIVILEGED: passwords[UNPRIVILEGED]})
    admin.close()
    return passwords
