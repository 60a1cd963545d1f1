"""The table of rights, against the one that the design names; no broker is needed for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.security import kafka_users, rights
from infra.security.rights import Grant
from infra.supervisor.stack import SERVICES
from shared.contracts.topics import LEDGERS, MARKS, SUBMITS, TOPICS, WRITER, tenant_topics
from tests.infra.security.allowed import allows, covers

ALL = ("access", "admission", "priority", "placement", "failslow", "throttle")
DESIGN: dict[str, tuple[set[str], set[str]]] = {
    # User: topics that it may write, topics that it may read; `*` at the end is a prefix.
    "gateway": (
        {"commands", "access.commands", "llm.requests"},
        {"submissions.*", "requests.*", "access", "admission", "logs", "events"},
    ),
    "access": ({"access"}, {"access.commands", "access"}),
    "admission": ({"admission"}, {"commands", "placement", "admission", "access"}),
    "priority": ({"priority"}, {"admission", "placement", "priority", "access"}),
    "placement": (
        {"placement", "heartbeats"},
        {
            "commands",
            "admission",
            "priority",
            "reports",
            "failslow",
            "heartbeats",
            "placement",
            "access",
        },
    ),
    "executor": (
        {"reports", "heartbeats", "telemetry", "logs", "submissions.*"},
        {"placement", "admission", "access"},
    ),
    "failslow": (
        {"failslow", "commands"},
        {"commands", "placement", "telemetry", "failslow", "access"},
    ),
    "throttle": ({"throttle", "answers.*"}, {"llm.requests", "throttle", "access"}),
    "publisher": (
        {"events", "events.*", "dead"},
        {
            *ALL,
            *("commands", "access.commands", "reports", "llm.requests", "events"),
            *("submissions.*", "requests.*"),
        },
    ),
    "projector": (set(), {*ALL, "logs"}),
    "notifier": (set(), {"access", "admission", "placement"}),
    "verify": (set(), {"*"}),
    "operator": (
        {"commands", "access.commands", "reports", "llm.requests", "submissions.*"},
        {"*"},
    ),
    "admin": (set(), set()),
}


def _topics(user: str, operation: str) -> set[str]:
    return {
        grant.name + "*" * grant.prefixed
        for grant in rights.table()
        if grant.user == user and grant.kind == "topic" and grant.operation == operation
    }


def test_the_table_is_that_of_the_design() -> None:
    assert set(rights.users()) == set(DESIGN)
    operations = {user: (_topics(user, "write"), _topics(user, "read")) for user in rights.users()}
    assert operations == DESIGN


def test_every_service_that_is_started_is_a_user() -> None:
    assert {service.user for service in SERVICES} == set(rights.services())


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_has_one_writer_among_the_services(topic: str) -> None:
    writers = {
        user for user in rights.services() if allows(rights.table(), user, "write", "topic", topic)
    }
    others = {
        service for also in (MARKS, SUBMITS) for service, topics in also.items() if topic in topics
    }
    assert writers == {WRITER[topic]} | others
    assert topic not in LEDGERS or writers == {topic}


def test_only_the_administrator_may_change_anything_but_records() -> None:
    may_more = {g.user for g in rights.table() if g.operation not in ("read", "write", "describe")}
    assert may_more == {rights.ADMIN}
    assert not allows(rights.table(), rights.ADMIN, "delete", "topic", "placement")


def test_a_tenant_may_do_nothing_to_another_of_a_similar_name() -> None:
    ada = rights.of_tenant("ada")
    assert allows(ada, "tenant.ada", "write", "topic", "submissions.ada")
    assert allows(ada, "tenant.ada", "read", "group", "ada/mine")
    for other in ("ada.b", "adam", "ada-2"):
        for operation in ("read", "write", "describe"):
            for topic in tenant_topics(other):
                assert not allows(ada, "tenant.ada", operation, "topic", topic.name)
        assert not allows(ada, "tenant.ada", "read", "group", f"{other}/mine")


def test_a_right_to_read_covers_describe_but_not_the_reverse() -> None:
    reads = Grant("a", "read", "topic", "t")
    assert covers(reads, "describe", "topic", "t")
    assert not covers(reads, "write", "topic", "t")
    assert not covers(reads, "read", "group", "t")
    assert not covers(Grant("a", "describe", "topic", "t"), "read", "topic", "t")


def test_passwords_are_made_once_and_are_closed_to_others(tmp_path: Path) -> None:
    assert kafka_users.make(tmp_path, ["a", "b"]) == ["a", "b"]
    first = kafka_users.password(tmp_path, "a")
    assert kafka_users.make(tmp_path, ["a", "c"]) == ["c"]
    assert kafka_users.password(tmp_path, "a") == first != kafka_users.password(tmp_path, "b")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 50])
def test_a_password_that_cannot_be_one_is_refused_and_not_shown(
    tmp_path: Path, content: bytes
) -> None:
    kafka_users.path_of(tmp_path, "a").write_bytes(content)
    with pytest.raises(kafka_users.NoPassword, match="kafka_a: ") as refused:
        kafka_users.password(tmp_path, "a")
    assert "short\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "../a", "A", "a/b", "x" * 101])
def test_a_name_that_is_no_user_reaches_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(kafka_users.NoPassword, match="no name of a Kafka user"):
        kafka_users.password(tmp_path, name)
