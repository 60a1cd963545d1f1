from __future__ import annotations

import shutil
import ssl
import stat
from pathlib import Path

import asyncpg
import psutil
import pytest

from infra.machine.folders import socket_dir
from infra.machine.process import free_ports
from infra.postgres import server as postgres
from infra.security import certificates
from tests.infra.postgres.tls_dsn import tls_dsn
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.process


async def _ask(dsn: str, sql: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


async def test_rows_are_there_again_after_a_clean_stop(tmp_path: Path) -> None:
    running, dsn = postgres.start(tmp_path / "pg")
    await _ask(dsn, "CREATE TABLE kept AS SELECT 7 AS seven")
    running.stop()
    assert running.process.returncode == 0
    again, same = postgres.start(tmp_path / "pg")
    try:
        assert same == dsn
        assert await _ask(dsn, "SELECT seven FROM kept") == 7
    finally:
        again.stop()


async def test_rows_are_there_again_after_a_kill(tmp_path: Path) -> None:
    running, dsn = postgres.start(tmp_path / "pg")
    await _ask(dsn, "CREATE TABLE kept AS SELECT 7 AS seven")
    await _ask(dsn, "CHECKPOINT")
    # Its processes end after it; until then its memory is in use, and no other server starts.
    children = psutil.Process(running.pid).children()
    running.kill()
    psutil.wait_procs(children, timeout=PATIENCE_S)
    again, _ = postgres.start(tmp_path / "pg")
    try:
        assert await _ask(dsn, "SELECT seven FROM kept") == 7
    finally:
        again.stop()


def test_the_server_is_never_root_and_its_files_are_private(tmp_path: Path) -> None:
    running, _ = postgres.start(tmp_path / "pg")
    try:
        assert psutil.Process(running.pid).uids().effective != 0
        assert psutil.Process(running.pid).net_connections("inet") == []
        folder = socket_dir(tmp_path / "pg")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        running.stop()


def test_a_data_folder_that_is_too_deep_for_a_socket_works_too(tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 30)
    running, dsn = postgres.start(deep)
    try:
        assert postgres.is_ready(deep)
        assert str(deep) not in dsn.partition("&passfile")[0]
    finally:
        running.stop()
        socket_dir(deep).rmdir()


async def test_every_connection_needs_the_password_from_a_private_file(tmp_path: Path) -> None:
    running, dsn = postgres.start(tmp_path / "pg")
    try:
        open_dsn = dsn.partition("&passfile")[0]
        for password in (None, "", "berth"):
            with pytest.raises((asyncpg.InvalidPasswordError, asyncpg.InterfaceError)):
                await asyncpg.connect(open_dsn, password=password)
        files = sorted((tmp_path / "pg" / "passwords").iterdir())
        assert [path.name for path in files] == sorted(postgres.USERS)
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        secrets = [path.read_text().strip().rpartition(":")[2] for path in files]
        assert len(set(secrets)) == len(files) and min(map(len, secrets)) > 40
        settings = " ".join(psutil.Process(running.pid).cmdline()) + dsn
        assert not any(secret in settings for secret in secrets)
        held = await _ask(dsn, "SELECT string_agg(rolpassword, ' ') FROM pg_authid")
        assert str(held).startswith("SCRAM-SHA-256$")
    finally:
        running.stop()


async def test_a_cluster_from_before_there_were_passwords_is_made_anew(tmp_path: Path) -> None:
    running, dsn = postgres.start(tmp_path / "pg")
    await _ask(dsn, "CREATE TABLE old AS SELECT 1")
    running.stop()
    shutil.rmtree(tmp_path / "pg" / "passwords")
    again, dsn = postgres.start(tmp_path / "pg")
    try:
        assert await _ask(dsn, "SELECT to_regclass('old')") is None
    finally:
        again.stop()


@pytest.mark.skipif(not postgres.DEBIAN.exists(), reason="Debian's Postgres is not installed")
async def test_tcp_takes_tls_only_and_the_server_proves_its_identity(tmp_path: Path) -> None:
    certificates.make(tmp_path / "ours")
    certificates.make(tmp_path / "theirs")
    [port] = free_ports(1)
    tls = postgres.LoopbackTls(port, tmp_path / "ours")
    running, _ = postgres.start(tmp_path / "pg", tls)
    try:
        dsn = tls_dsn(tmp_path / "pg", tls)
        error_text = await _ask(dsn, "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        assert str(error_text).startswith("TLSv1.")
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match="no encryption"):
            await _ask(dsn.replace("verify-full", "disable"), "SELECT 1")
        wrong_ca = tls_dsn(tmp_path / "pg", postgres.LoopbackTls(port, tmp_path / "theirs"))
        with pytest.raises(ssl.SSLCertVerificationError):
            await _ask(wrong_ca, "SELECT 1")
        with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
            await _ask(dsn.replace("127.0.0.1", "127.1"), "SELECT 1")
    finally:
        running.stop()
