"""What the guarded broker refuses and what it lets pass, each cell of the table tried for real."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.errors import ClusterAuthorizationFailedError, GroupAuthorizationFailedError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
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

from infra.broker import kafka, topics
from infra.machine.process import Running, free_ports
from infra.security import acls, kafka_users, rights
from infra.security.rights import Grant, Operation
from shared.bus.kafka import KafkaLog
from shared.connection import Connection
from shared.contracts.topics import TOPICS, submissions, tenant_events
from shared.ledger.errors import Forbidden
from shared.ledger.partition import TP
from tests.patience import all_hung_up

pytestmark = [
    pytest.mark.parts,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]
TENANTS = ("ada", "ada.b")
NOBODY = "site.nobody"
PASSED, NO_TOPIC, NO_GROUP = 0, 29, 30
NO_COORDINATOR_YET, UNKNOWN_MEMBER = 16, 25
OPERATIONS: tuple[Operation, ...] = ("write", "read")


@dataclass(frozen=True)
class Guarded:
    """A broker with all topics, users and ACLs, and one user without any right."""

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


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    (port,) = free_ports(1)
    running = kafka.start(folder, port)
    try:
        yield Guarded(running, folder, port, _furnished(kafka.root(folder), folder / "secrets"))
    finally:
        running.stop()


@pytest.fixture(autouse=True)
async def every_call_ended(guarded: Guarded) -> AsyncIterator[None]:
    async with all_hung_up():
        yield


def _furnished(root: Connection, secrets: Path) -> dict[str, str]:
    """Passwords of all users."""
    topics.create(root, 1, durable=False)
    for tenant in TENANTS:
        topics.create(root, 1, False, [submissions(tenant), tenant_events(tenant)])
    topics.secure(root, secrets)
    passwords = {user: kafka_users.password(secrets, user) for user in rights.users()}
    passwords[NOBODY] = kafka_users.new_password()
    admin = topics.connect(root)
    for tenant in TENANTS:
        passwords[rights.TENANT + tenant] = acls.create_user(admin, tenant)
    acls.set_passwords(admin, {NOBODY: passwords[NOBODY]})
    admin.close()
    return passwords


# ---- records and groups --------------------------------------------------------------------


ALL_TOPICS = (
    *TOPICS,
    *(make(tenant).name for tenant in TENANTS for make in (submissions, tenant_events)),
)
GROUPS = (*map(rights.group_of, rights.services()), "ada/reader", "ada.b/reader", "elsewhere")


async def test_every_cell_of_the_matrix_is_as_the_table_says(
    guarded: Guarded, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = await _ends(guarded)
    rows = await asyncio.gather(*(_row(guarded, user) for user in guarded.passwords))
    found = {cell: passed for row in rows for cell, passed in row.items()}
    wrong = {
        cell: passed
        for cell, passed in found.items()
        if passed != rights.allows(guarded.grants, *cell)
    }
    with capsys.disabled():
        sys.stdout.write(f"\n{_told(found)}\n")
    assert wrong == {}
    assert len(found) == len(guarded.passwords) * (2 * len(ALL_TOPICS) + len(GROUPS))
    written = Counter(
        name for (_, op, _, name), passed in found.items() if passed and op == "write"
    )
    assert await _ends(guarded) == {name: ends[name] + written[name] for name in ALL_TOPICS}


Cell = tuple[str, Operation, rights.Kind, str]


def _told(found: dict[Cell, bool]) -> str:
    passed = sum(found.values())
    return (
        f"ACL matrix: {len(found)} cells of {len({user for user, *_ in found})} users tried, "
        f"{passed} let pass, {len(found) - passed} refused"
    )


async def _row(guarded: Guarded, user: str) -> dict[Cell, bool]:
    how = guarded.connection(user).aiokafka()
    how.pop("bootstrap_servers")
    conn = await create_conn("127.0.0.1", guarded.port, **how)
    try:
        row: dict[Cell, bool] = {}
        for topic in ALL_TOPICS:
            row[user, "write", "topic", topic] = await _may_write(conn, topic)
            row[user, "read", "topic", topic] = await _may_read(conn, topic)
        for group in GROUPS:
            row[user, "read", "group", group] = await _may_join(conn, group)
        return row
    finally:
        conn.close()


async def _may_write(conn: AIOKafkaConnection, topic: str) -> bool:
    batch = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1024)
    batch.append(0, None, None, b"x", [])
    wish = ProduceRequest(None, -1, 5000, [(topic, [(0, bytes(batch.build()))])])
    answer = await conn.send(wish)
    return _passed(answer.topics[0][1][0][1], NO_TOPIC, PASSED)


async def _may_read(conn: AIOKafkaConnection, topic: str) -> bool:
    answer = await conn.send(FetchRequest(0, 0, 10_000, 0, [(topic, [(0, 0, 10_000)])]))
    return _passed(answer.topics[0][1][0][1], NO_TOPIC, PASSED)


async def _may_join(conn: AIOKafkaConnection, group: str) -> bool:
    """Who may read a group is told that he is no member of it; the others nothing."""
    answer = await conn.send(HeartbeatRequest(group, 1, "nobody"))
    return _passed(answer.error_code, NO_GROUP, UNKNOWN_MEMBER, NO_COORDINATOR_YET)


def _passed(code: int, refusal: int, *passing: int) -> bool:
    """Any other answer is no answer to the question."""
    assert code in (refusal, *passing)
    return code != refusal


async def _ends(guarded: Guarded) -> dict[str, int]:
    log = KafkaLog(guarded.root)
    await log.start()
    try:
        return {topic: await log.end(TP(topic, 0)) for topic in ALL_TOPICS}
    finally:
        await log.stop()


# ---- topics, rights, users -----------------------------------------------------------------


def _make(admin: KafkaAdminClient) -> object:
    return admin.create_topics([NewTopic("submissions.new", 1, 1)], validate_only=True)


def _widen(admin: KafkaAdminClient) -> object:
    return admin.create_partitions({"placement": 3}, validate_only=True)


def _delete(admin: KafkaAdminClient) -> object:
    return admin.delete_topics(["placement"])


def _shorten(admin: KafkaAdminClient) -> object:
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


def _look_at_rights(admin: KafkaAdminClient) -> object:
    return acls.grants(admin)


def _new_user(admin: KafkaAdminClient) -> object:
    mechanism = ScramMechanism.SCRAM_SHA_512
    wish = UserScramCredentialUpsertion("site.friend", mechanism, "x" * 40, iterations=8192)
    if admin.alter_user_scram_credentials([wish])["site.friend"] is not None:
        raise NoCluster("refused")
    return None


def _look_at_users(admin: KafkaAdminClient) -> object:
    # Asked of all users, Kafka 4.1 answers the refused with an error of its own, and never.
    found = admin.describe_user_scram_credentials(["placement"])
    if found["placement"]["error"]:
        raise NoCluster("refused")
    return found


WORKS: dict[str, tuple[Callable[[KafkaAdminClient], object], frozenset[str]]] = {
    "make a topic": (_make, frozenset({rights.ADMIN})),
    "add lanes": (_widen, frozenset()),
    "delete a ledger": (_delete, frozenset()),
    "change a retention": (_shorten, frozenset({rights.ADMIN})),
    "grant a right": (_grant_all, frozenset({rights.ADMIN})),
    "see rights": (_look_at_rights, frozenset({rights.ADMIN})),
    "make a user": (_new_user, frozenset({rights.ADMIN})),
    "see users": (_look_at_users, frozenset({rights.ADMIN})),
}
"""What a user tries beside records, and who may."""


def test_nobody_but_the_administrator_changes_topics_rights_or_users(
    guarded: Guarded, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda user: (user, _works(guarded, user)), guarded.passwords))
    wrong = [
        (user, work, row[work])
        for user, row in rows
        for work, (_, may) in WORKS.items()
        if (row[work] == "") != (user in may)
    ]
    with capsys.disabled():
        sys.stdout.write(f"\nadministration: {len(rows) * len(WORKS)} cells tried\n")
    assert wrong == []
    assert "placement" in _names(guarded)


def _works(guarded: Guarded, user: str) -> dict[str, str]:
    """The refusal of each work; empty where it was done."""
    admin = guarded.admin(user)
    try:
        return {name: _refusal(work, admin) for name, (work, _) in WORKS.items()}
    finally:
        admin.close()


def _refusal(work: Callable[[KafkaAdminClient], object], admin: KafkaAdminClient) -> str:
    try:
        work(admin)
    except (NoTopic, NoCluster) as error:
        return type(error).__name__
    return ""


def _names(guarded: Guarded) -> set[str]:
    admin = topics.connect(guarded.root)
    try:
        return set(admin.list_topics())
    finally:
        admin.close()


# ---- the table on the broker -----------------------------------------------------------------


def test_applied_again_nothing_changes_and_what_the_table_lacks_is_gone(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    foreign = Grant("projector", "write", "topic", "placement")
    try:
        acls._add(admin, [foreign])
        acls.set_passwords(admin, {"dismissed": kafka_users.new_password()})
        assert foreign in acls.grants(admin)
        topics.secure(guarded.root, guarded.folder / "secrets")
        assert acls.grants(admin) == guarded.grants
        assert "dismissed" not in acls.scram_users(admin)
        assert {NOBODY, *map(rights.TENANT.__add__, TENANTS)} < set(acls.scram_users(admin))
    finally:
        admin.close()


def test_a_right_that_the_table_cannot_express_stops_its_application(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    pattern = ResourcePattern(ResourceType.TOPIC, "placement")
    odd = ACL("User:admission", "10.0.0.1", ACLOperation.WRITE, ACLPermissionType.ALLOW, pattern)
    try:
        admin.create_acls([odd])
        with pytest.raises(acls.NotApplied, match=r"none of Berth's.*site\.\*"):
            topics.secure(guarded.root, guarded.folder / "secrets")
    finally:
        admin.delete_acls([_exactly(odd)])
        admin.close()


def _exactly(acl: ACL) -> object:
    from kafka.admin import ACLFilter, ResourcePatternFilter

    there = acl.resource_pattern
    found = ResourcePatternFilter(there.resource_type, there.resource_name, there.pattern_type)
    return ACLFilter(acl.principal, acl.host, acl.operation, acl.permission_type, found)


def test_passwords_cost_whoever_guesses_them_8192_rounds(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    try:
        known = admin.describe_user_scram_credentials()
    finally:
        admin.close()
    told = {
        (i["mechanism"], i["iterations"]) for u in known.values() for i in u["credential_infos"]
    }
    assert told == {(ScramMechanism.SCRAM_SHA_512, 8192)}


async def test_a_tenant_is_let_in_gets_a_new_password_and_is_shut_out(guarded: Guarded) -> None:
    admin = topics.connect(guarded.root)
    try:
        await asyncio.to_thread(
            topics.create, guarded.root, 1, False, [submissions("eve"), tenant_events("eve")]
        )
        first = replace(
            guarded.connection("tenant.ada"),
            user="tenant.eve",
            password=await asyncio.to_thread(acls.create_user, admin, "eve"),
        )
        log = KafkaLog(first)
        await log.start()
        await log.append(TP("submissions.eve", 0), b"hers")
        second = replace(first, password=await asyncio.to_thread(acls.create_user, admin, "eve"))
        await _is_refused(first, "tenant.eve")
        assert await asyncio.to_thread(acls.remove_user, admin, "eve")
        # Her open connection has lost its rights, and a new one is not made.
        with pytest.raises(Forbidden, match="may not append"):
            await log.append(TP("submissions.eve", 0), b"no more")
        await log.stop()
        await _is_refused(second, "tenant.eve")
        assert not await asyncio.to_thread(acls.remove_user, admin, "eve")
    finally:
        admin.close()


# ---- who is not let in ------------------------------------------------------------------------


async def _is_refused(connection: Connection, names: str) -> None:
    log = KafkaLog(connection)
    with pytest.raises(Forbidden, match=f"refuses {re.escape(names)}") as refused:
        await log.start()
    assert connection.password not in str(refused.value)


async def test_a_wrong_password_is_refused_at_once_and_said_in_one_line(guarded: Guarded) -> None:
    right = guarded.connection("placement")
    await _is_refused(replace(right, password=guarded.passwords["admission"]), "placement")


async def test_who_is_unknown_is_refused(guarded: Guarded) -> None:
    await _is_refused(replace(guarded.connection("placement"), user="root"), "root")


async def test_a_broker_whose_certificate_another_ca_signed_is_not_believed(
    guarded: Guarded, tmp_path: Path
) -> None:
    from infra.security import certificates

    certificates.make(tmp_path)
    other = replace(guarded.connection("placement"), ca=tmp_path / "ca.crt")
    await _is_refused(other, "placement")


async def test_who_may_write_nothing_gets_no_idempotent_producer(guarded: Guarded) -> None:
    producer = AIOKafkaProducer(
        **guarded.connection("verify").aiokafka(), enable_idempotence=True, acks="all"
    )
    with pytest.raises(ClusterAuthorizationFailedError):
        await producer.start()
        await producer.send_and_wait("commands", b"x", partition=0)
    await producer.stop()


async def test_a_service_cannot_enter_the_group_of_another(guarded: Guarded) -> None:
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(
        "placement", group_id="berth-placement", **guarded.connection("admission").aiokafka()
    )
    with pytest.raises(GroupAuthorizationFailedError):
        await consumer.start()
        await consumer.getone()
    await consumer.stop()


# ---- listeners --------------------------------------------------------------------------------


def _listeners(guarded: Guarded) -> dict[str, int]:
    config = (guarded.folder / kafka.CONFIG).read_text()
    return {
        name: int(port)
        for name, port in re.findall(
            r"(\w+)://127\.0\.0\.1:(\d+)",
            next(line for line in config.splitlines() if line.startswith("listeners=")),
        )
    }


def test_the_broker_listens_on_the_loopback_and_nowhere_in_plain_text(guarded: Guarded) -> None:
    config = (guarded.folder / kafka.CONFIG).read_text()
    assert "PLAINTEXT" not in config and "ANONYMOUS" not in config
    assert "auto.create.topics.enable=false" in config
    ports = _listeners(guarded)
    held = {
        (each.laddr.ip.removeprefix("::ffff:"), each.laddr.port)
        for each in psutil.Process(guarded.running.pid).net_connections("tcp")
        if each.status == psutil.CONN_LISTEN
    }
    assert held == {("127.0.0.1", port) for port in ports.values()}
    for port in ports.values():
        assert _answer_to_plain(port) == b""


API_VERSIONS = bytes.fromhex("0000000e 0012 0000 00000001 0004 74657374")
"""A request that is answered before anybody has said who he is: its length, key, version, number,
and a client's name."""


def _answer_to_plain(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 30) as plain:
        plain.sendall(API_VERSIONS)
        try:
            found = plain.recv(100)
        except ConnectionResetError:
            return b""
    # A TLS alert is no answer of Kafka's.
    return b"" if found[:1] == b"\x15" else found


@pytest.mark.parametrize("listener", ["INTERNAL", "CONTROLLER"])
@pytest.mark.parametrize("who", ["", "api"])
def test_only_the_broker_itself_may_call_its_controller(
    guarded: Guarded, listener: str, who: str
) -> None:
    pems = guarded.folder / kafka.CERTIFICATES
    context = ssl.create_default_context(cafile=str(pems / "ca.crt"))
    if who:
        context.load_cert_chain(pems / f"{who}.pem")
    port = _listeners(guarded)[listener]
    with pytest.raises((ssl.SSLError, ConnectionResetError, BrokenPipeError)):
        _answer_to_tls(context, port)
    context.load_cert_chain(pems / "broker.pem")
    assert _answer_to_tls(context, port)


def _answer_to_tls(context: ssl.SSLContext, port: int) -> bytes:
    """With TLS 1.3 a client hears only after its handshake that it was refused."""
    raw = socket.create_connection(("127.0.0.1", port), 30)
    with context.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
        tls.sendall(API_VERSIONS)
        return tls.recv(100)


# ---- secrets ----------------------------------------------------------------------------------


def test_no_password_is_in_an_argument_a_log_or_the_configuration(guarded: Guarded) -> None:
    secrets = [*guarded.passwords.values()]
    keys = [p.read_text().splitlines()[1] for p in guarded.folder.rglob("*.key")]
    told = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True)
    files = (guarded.folder / kafka.CONFIG, guarded.folder / "kafka.log")
    places = [told.stdout, *(path.read_text(errors="replace") for path in files)]
    assert len(secrets) >= 15 and len(keys) == 4
    assert [s for s in (*secrets, *keys) if any(s in place for place in places)] == []
    assert all(p not in repr(guarded.connection(user)) for user, p in guarded.passwords.items())
