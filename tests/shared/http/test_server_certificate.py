"""A server takes a renewed certificate at the next handshake, and keeps a usable one."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from infra.security.certificates import SERVER_DAYS, CertificateOptions, make
from shared.http.server_certificate import ServerCertificate

DAY_S = 86_400.0


def served(folder: Path) -> ServerCertificate:
    return ServerCertificate(folder / "api.crt", folder / "api.key")


@asynccontextmanager
async def listening(certificate: ServerCertificate) -> AsyncIterator[int]:
    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0, ssl=certificate.context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def serial_number(port: int, ca: Path, host: str = "127.0.0.1") -> str:
    """Return the serial number of the certificate that a client gets, which verifies it."""
    trust = ssl.create_default_context(cafile=ca)
    _, writer = await asyncio.open_connection(host, port, ssl=trust)
    peer = writer.get_extra_info("peercert")
    writer.close()
    return str(peer["serialNumber"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path, host: str) -> None:
    make(tmp_path)
    async with listening(served(tmp_path)) as port:
        before = await serial_number(port, tmp_path / "ca.crt", host)
        assert await serial_number(port, tmp_path / "ca.crt", host) == before
        make(tmp_path, CertificateOptions(renew=True))
        assert await serial_number(port, tmp_path / "ca.crt", host) != before


async def test_files_that_cannot_be_used_are_logged_once_and_the_last_ones_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path)
    async with listening(served(tmp_path)) as port:
        before = await serial_number(port, tmp_path / "ca.crt")
        whole = (tmp_path / "api.key").read_bytes()
        (tmp_path / "api.key").write_bytes((tmp_path / "broker.key").read_bytes())
        with caplog.at_level(logging.ERROR):
            for _ in range(2):
                assert await serial_number(port, tmp_path / "ca.crt") == before
        assert [record.message for record in caplog.records] == ["renewed certificate not used"]
        (tmp_path / "api.key").unlink()
        assert await serial_number(port, tmp_path / "ca.crt") == before
        (tmp_path / "api.key").write_bytes(whole)
        make(tmp_path, CertificateOptions(renew=True))
        assert await serial_number(port, tmp_path / "ca.crt") != before


def test_the_time_until_the_end_is_that_of_the_present_files(tmp_path: Path) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    make(tmp_path, now=now)
    at_s = [now.timestamp()]
    certificate = ServerCertificate(
        tmp_path / "api.crt", tmp_path / "api.key", now_s=lambda: at_s[0]
    )
    assert certificate.expires_in_s() == SERVER_DAYS * DAY_S
    at_s[0] += 31 * DAY_S
    assert certificate.expires_in_s() == -DAY_S
    make(tmp_path, now=now + timedelta(days=31))
    os.utime(tmp_path / "api.crt")
    assert certificate.expires_in_s() == SERVER_DAYS * DAY_S
