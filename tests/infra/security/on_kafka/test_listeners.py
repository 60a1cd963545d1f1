"""Ports, protocols and processes of the guarded broker: no plain text, no secret in sight."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess

import psutil
import pytest

from infra.broker import kafka
from tests.infra.security.on_kafka.guarded_broker import MARKS, Guarded

pytestmark = MARKS


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
    listening = {
        (connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
        for connection in psutil.Process(guarded.running.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {("127.0.0.1", port) for port in ports.values()}
    for port in ports.values():
        assert _answer_to_plain(port) == b""


API_VERSIONS = bytes.fromhex("0000000e 0012 0000 00000001 0004 74657374")
"""A request that Kafka answers before authentication: its length, key, version, number, and the
name of a client."""


def _answer_to_plain(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 30) as plain:
        plain.sendall(API_VERSIONS)
        try:
            answer = plain.recv(100)
        except ConnectionResetError:
            return b""
    # A TLS alert is no answer of Kafka's.
    return b"" if answer[:1] == b"\x15" else answer


@pytest.mark.parametrize("listener", ["INTERNAL", "CONTROLLER"])
@pytest.mark.parametrize("certificate", ["", "api"])
def test_only_the_broker_itself_may_call_its_controller(
    guarded: Guarded, listener: str, certificate: str
) -> None:
    pems = guarded.folder / kafka.CERTIFICATES
    context = ssl.create_default_context(cafile=str(pems / "ca.crt"))
    if certificate:
        context.load_cert_chain(pems / f"{certificate}.pem")
    port = _listeners(guarded)[listener]
    with pytest.raises((ssl.SSLError, ConnectionResetError, BrokenPipeError)):
        _answer_to_tls(context, port)
    context.load_cert_chain(pems / "broker.pem")
    assert _answer_to_tls(context, port)


def _answer_to_tls(context: ssl.SSLContext, port: int) -> bytes:
    """With TLS 1.3 a client is refused only after its handshake: when it reads."""
    raw = socket.create_connection(("127.0.0.1", port), 30)
    with context.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
        tls.sendall(API_VERSIONS)
        return tls.recv(100)


def test_no_password_is_in_an_argument_a_log_or_the_configuration(guarded: Guarded) -> None:
    secrets = [*guarded.passwords.values()]
    keys = [path.read_text().splitlines()[1] for path in guarded.folder.rglob("*.key")]
    processes = subprocess.run(
        ["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True
    )
    files = (guarded.folder / kafka.CONFIG, guarded.folder / "kafka.log")
    places = [processes.stdout, *(path.read_text(errors="replace") for path in files)]
    assert len(secrets) >= 15 and len(keys) == 4
    shown = [secret for secret in (*secrets, *keys) if any(secret in place for place in places)]
    assert shown == []
    assert all(
        password not in repr(guarded.connection(user))
        for user, password in guarded.passwords.items()
    )
