from __future__ import annotations

import stat
from pathlib import Path

import asyncpg
import psutil

from infra import postgres
from infra.folders import socket_dir


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
    running.kill()
    again, _ = postgres.start(tmp_path / "pg")
    try:
        assert await _ask(dsn, "SELECT seven FROM kept") == 7
    finally:
        again.stop()


def test_the_server_is_never_root_and_nobody_else_can_reach_it(tmp_path: Path) -> None:
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
        assert str(deep) not in dsn
    finally:
        running.stop()
        socket_dir(deep).rmdir()
