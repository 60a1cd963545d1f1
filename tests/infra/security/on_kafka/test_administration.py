"""Each user tries to change topics, rights and users of the guarded broker."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewTopic,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.errors import ClusterAuthorizationFailedError as NoCluster
from kafka.errors import TopicAuthorizationFailedError as NoTopic

from infra.broker import topics
from infra.security import acls, rights
from tests.infra.security.on_kafka.guarded_broker import MARKS, Guarded

pytestmark = MARKS


def _create_topic(admin: KafkaAdminClient) -> object:
    return admin.create_topics([NewTopic("submissions.new", 1, 1)], validate_only=True)


def _add_lanes(admin: KafkaAdminClient) -> object:
    return admin.create_partitions({"placement": 3}, validate_only=True)


def _delete_ledger(admin: KafkaAdminClient) -> object:
    return admin.delete_topics(["placement"])


def _change_retention(admin: KafkaAdminClient) -> object:
    resource = ConfigResource(ConfigResourceType.TOPIC, "dead", {"retention.ms": "604800000"})
    answer = admin.alter_configs([resource], raise_on_unknown=False)["topic"]["dead"]
    if answer != "OK":
        raise NoTopic(answer)
    return answer


def _grant_all(admin: KafkaAdminClient) -> object:
    pattern = ResourcePattern(ResourceType.TOPIC, "placement")
    allow = ACLPermissionType.ALLOW
    acl = ACL("User:site.friend", "*", ACLOperation.WRITE, allow, pattern)
    failed = admin.create_acls([acl])["failed"]
    if failed:
        raise failed[0]
    return None


def _list_rights(admin: KafkaAdminClient) -> object:
    return acls.grants(admin)


def _create_user(admin: KafkaAdminClient) -> object:
    mechanism = ScramMechanism.SCRAM_SHA_512
    upsertion = UserScramCredentialUpsertion("site.friend", mechanism, "x" * 40, iterations=8192)
    if admin.alter_user_scram_credentials([upsertion])["site.friend"] is not None:
        raise NoCluster("refused")
    return None


def _list_users(admin: KafkaAdminClient) -> object:
    # Asked of all users, Kafka 4.1 answers the refused with an error of its own, and never.
    credentials = admin.describe_user_scram_credentials(["placement"])
    if credentials["placement"]["error"]:
        raise NoCluster("refused")
    return credentials


ACTS: dict[str, tuple[Callable[[KafkaAdminClient], object], frozenset[str]]] = {
    "make a topic": (_create_topic, frozenset({rights.ADMIN})),
    "add lanes": (_add_lanes, frozenset()),
    "delete a ledger": (_delete_ledger, frozenset()),
    "change a retention": (_change_retention, frozenset({rights.ADMIN})),
    "grant a right": (_grant_all, frozenset({rights.ADMIN})),
    "see rights": (_list_rights, frozenset({rights.ADMIN})),
    "make a user": (_create_user, frozenset({rights.ADMIN})),
    "see users": (_list_users, frozenset({rights.ADMIN})),
}
"""Acts beside reading and writing records: name -> the act, and the users that may do it."""


def test_only_the_administrator_changes_topics_rights_or_users(
    guarded: Guarded, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda user: (user, _refusals(guarded, user)), guarded.passwords))
    wrong = [
        (user, act, row[act])
        for user, row in rows
        for act, (_, users) in ACTS.items()
        if (row[act] == "") != (user in users)
    ]
    with capsys.disabled():
        sys.stdout.write(f"\nadministration: {len(rows) * len(ACTS)} cells tried\n")
    assert wrong == []
    assert "placement" in _names(guarded)


def _refusals(guarded: Guarded, user: str) -> dict[str, str]:
    """Return the refusal of each act; empty where it was allowed."""
    admin = guarded.admin(user)
    try:
        return {name: _refusal(act, admin) for name, (act, _) in ACTS.items()}
    finally:
        admin.close()


def _refusal(act: Callable[[KafkaAdminClient], object], admin: KafkaAdminClient) -> str:
    try:
        act(admin)
    except (NoTopic, NoCluster) as error:
        return type(error).__name__
    return ""


def _names(guarded: Guarded) -> set[str]:
    admin = topics.connect(guarded.root)
    try:
        return set(admin.list_topics())
    finally:
        admin.close()
