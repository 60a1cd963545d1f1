"""A stack on a Kafka and a Postgres that it does not start, by the commands of the page."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from infra.broker import kafka, topics
from infra.machine.process import free_ports
from infra.postgres import server as postgres
from infra.supervisor import supervise
from tests.infra.postgres.tls_dsn import tls_dsn
from tests.operations.machines_page import run_blocks
from tests.pages import environment

DEBIAN_HAS_POSTGRES = any(postgres.DEBIAN.glob("*/bin/postgres"))

pytestmark = [
    pytest.mark.parts,
    pytest.mark.stack,
    pytest.mark.kafka,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
    pytest.mark.skipif(not DEBIAN_HAS_POSTGRES, reason="no Postgres with TLS is installed"),
]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Both parts, and the folder of the files that the page names."""

    folder: Path
    servers: str

    @property
    def home(self) -> Path:
        return self.folder / "data"

    @property
    def broker(self) -> Path:
        return self.folder / "broker"


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    prefix = "berth-elsewhere-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as root:
        folder = Path(root)
        kafka_port, postgres_port = free_ports(2)
        broker = kafka.start(folder / "broker", kafka_port)
        pems = folder / "broker" / kafka.CERTIFICATES
        tls = postgres.LoopbackTls(postgres_port, pems)
        database, _ = postgres.start(folder / "database", tls)
        (folder / "kafka-ca.crt").symlink_to(pems / "ca.crt")
        (folder / "super-user.pem").symlink_to(pems / "broker.pem")
        (folder / "postgres.address").write_text(_address(folder / "database", tls))
        try:
            yield Elsewhere(folder, f"127.0.0.1:{kafka_port}")
        finally:
            supervise.down(folder / "data")
            database.stop()
            broker.stop()


def _address(data: Path, tls: postgres.LoopbackTls) -> str:
    """Return the owner's address with its password in it."""
    password = (data / "passwords" / postgres.USER).read_text().strip().rpartition(":")[2]
    bare, _, query = tls_dsn(data, tls).partition("?")
    tls_only = query.partition("&")[2]
    return bare.replace("@", f":{password}@", 1) + f"?{tls_only}\n"


def test_the_page_sets_up_uses_and_verifies_them(elsewhere: Elsewhere) -> None:
    setup = kafka.root(elsewhere.broker).servers
    (port,) = free_ports(1)
    variables = {"SETUP": setup, "KAFKA": elsewhere.servers, "CONTROL": f"127.0.0.1:{port}"}
    run_blocks("elsewhere", elsewhere.home, variables)
    stack = supervise.load(elsewhere.home)
    assert stack.kafka == elsewhere.servers and "passfile=" in stack.postgres
    assert not (elsewhere.home / "external" / "kafka").exists()
    assert not (elsewhere.home / "external" / "postgres").exists()


def test_a_wrong_password_is_refused_in_one_line(elsewhere: Elsewhere) -> None:
    path = elsewhere.folder / "secrets" / "kafka_admin"
    right = path.read_text()
    path.write_text("x" * 43)
    try:
        assert f"topics: {elsewhere.servers} refuses admin" in _refusal(elsewhere)
    finally:
        path.write_text(right)


def test_a_topic_that_loses_records_is_refused(elsewhere: Elsewhere) -> None:
    _set_retention(elsewhere, "604800000")
    try:
        refusal = _refusal(elsewhere)
    finally:
        _set_retention(elsewhere, "-1")
    assert "topic placement: retention.ms is 604800000; must be -1" in refusal


def _set_retention(elsewhere: Elsewhere, retention_ms: str) -> None:
    settings = {"retention.ms": retention_ms}
    admin = topics.connect(kafka.root(elsewhere.broker))
    try:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "placement", settings)])
    finally:
        admin.close()


def test_a_postgres_that_is_down_is_named(elsewhere: Elsewhere) -> None:
    path = elsewhere.folder / "nowhere"
    (port,) = free_ports(1)
    path.write_text(f"postgresql://berth:secret@127.0.0.1:{port}/berth")
    refusal = _refusal(elsewhere, path.name)
    assert "migrate: cannot migrate the read models" in refusal and str(port) in refusal


def _refusal(elsewhere: Elsewhere, address: str = "postgres.address") -> str:
    """Return the error of a start."""
    files = {"BERTH_KAFKA_CA": "kafka-ca.crt", "BERTH_KAFKA_SECRETS": "secrets"}
    done = subprocess.run(
        ["berth", "up", "--broker", elsewhere.servers, "--postgres", address, "--detach"],
        env=environment(elsewhere.home) | files,
        cwd=elsewhere.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert not supervise.is_running(elsewhere.home)
    return done.stderr
