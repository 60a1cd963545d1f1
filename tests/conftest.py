"""Parts that many tests share: one real Postgres per session, one database per test."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from infra.postgres import server as postgres


@pytest.fixture(scope="session")
def postgres_dir() -> Iterator[Path]:
    """A short path: a unix socket's may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="berth-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        running, _ = postgres.start(folder)
        try:
            yield folder
        finally:
            running.stop()


@pytest.fixture
async def database(postgres_dir: Path) -> AsyncIterator[str]:
    """Address of a fresh, empty database."""
    name = f"t{uuid4().hex[:12]}"
    admin = await asyncpg.connect(postgres.dsn(postgres_dir))
    try:
        await admin.execute(f'CREATE DATABASE "{name}"')
        yield postgres.dsn(postgres_dir, name)
        await admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
    finally:
        await admin.close()
