"""A running broker serves a renewed certificate on each of its listeners."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from infra.broker import kafka
from infra.broker.certificate import reload_certificate
from infra.machine.process import free_ports
from infra.security.certificates import CertificateOptions, make
from shared.process.connection import Connection
from tests.patience import until

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.parts,
    pytest.mark.process,
    pytest.mark.skipif(bool(kafka.missing()), reason=kafka.missing() or "Kafka is there"),
]


def serial_number(connection: Connection, address: str) -> str:
    host, _, port = address.rpartition(":")
    trust = connection.tls()
    assert trust is not None
    with (
        socket.create_connection((host, int(port))) as plain,
        trust.wrap_socket(plain, server_hostname=host) as secured,
    ):
        peer = secured.getpeercert()
    return str(peer and peer["serialNumber"])


def addresses(data_dir: Path) -> list[str]:
    lines = (data_dir / kafka.CONFIG).read_text().splitlines()
    [listeners] = [line.partition("=")[2] for line in lines if line.startswith("listeners=")]
    return [listener.partition("://")[2] for listener in listeners.split(",")]


def served(data_dir: Path) -> set[str]:
    """Return the serial numbers of the certificates of all listeners."""
    root = kafka.root(data_dir)
    return {serial_number(root, address) for address in addresses(data_dir)}


async def renew_and_reload(data_dir: Path) -> str:
    """Return the serial number of the new certificate, once all listeners serve it."""
    before = served(data_dir)
    make(data_dir / kafka.CERTIFICATES, CertificateOptions(renew=True))
    reload_certificate(data_dir)
    await until(lambda: served(data_dir).isdisjoint(before) and len(served(data_dir)) == 1)
    return served(data_dir).pop()


async def test_the_broker_serves_a_renewed_certificate(tmp_path: Path) -> None:
    [port] = free_ports(1)
    running = kafka.start(tmp_path, port)
    try:
        assert len(addresses(tmp_path)) == 3
        first = served(tmp_path)
        # No setting has changed yet, so nothing makes the broker read the file again.
        make(tmp_path / kafka.CERTIFICATES, CertificateOptions(renew=True))
        assert served(tmp_path) == first
        assert len({*first, *[await renew_and_reload(tmp_path) for _ in range(2)]}) == 3
    finally:
        running.stop()
