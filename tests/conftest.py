"""Parts that many tests share: one Postgres, one whole stack, and a database for each test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg
import pytest
from hypothesis import settings

from infra.machine.owned_folders import scratch_folder
from infra.postgres import server as postgres
from tests.event_loop import EventLoopPolicy
from tests.selection import (
    pytest_collection,
    pytest_collection_modifyitems,
    pytest_runtest_protocol,
    pytest_runtest_teardown,
    pytest_xdist_make_scheduler,
)

if TYPE_CHECKING:
    from tests.e2e.stand import Stand

__all__ = [
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_runtest_protocol",
    "pytest_runtest_teardown",
    "pytest_xdist_make_scheduler",
]
# How long an example takes depends on the load of the machine. CI (`CI=1`) draws the same examples
# for the same code: a change is not refused for what another one left behind. Developers draw anew,
# and a fifth of the examples in `make test-fast` (`EXAMPLES=20`).
EXAMPLES = int(os.environ.get("EXAMPLES", "100"))
settings.register_profile("developer", deadline=None, max_examples=EXAMPLES)
settings.load_profile("ci" if os.environ.get("CI") else "developer")
asyncio.set_event_loop_policy(EventLoopPolicy())

SLOW_NODE = "a100-0"
"""The slow node of the shared stack."""


@pytest.fixture(scope="session")
def postgres_dir() -> Iterator[Path]:
    """Folder of a running Postgres; its path is short: a unix socket's may have 107 bytes."""
    with scratch_folder("pg") as folder:
        running, _ = postgres.start(folder)
        try:
            yield folder
        finally:
            running.stop()


@pytest.fixture(scope="session")
def read_models(postgres_dir: Path) -> str:
    """Name of a database with the read models, of which each test gets a copy: the migrations
    take longer than most of these tests."""
    from shared.projections.migrate import migrate

    name = "read_models"
    postgres.create_database(postgres_dir, name)
    asyncio.run(migrate(postgres.dsn(postgres_dir, name)))
    return name


@pytest.fixture
async def database(postgres_dir: Path, read_models: str) -> AsyncIterator[str]:
    """Address of a fresh database with the read models, without rows."""
    name = f"t{uuid4().hex[:12]}"
    admin = await asyncpg.connect(postgres.dsn(postgres_dir))
    try:
        await admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{read_models}"')
        yield postgres.dsn(postgres_dir, name)
        await admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
    finally:
        await admin.close()


@pytest.fixture(scope="session")
def shared_stand() -> Iterator[Stand]:
    """One embedded stack for the tests that neither kill nor reconfigure it: with TLS, with
    traces where Zipkin can run, and with one slow node. A test leaves no job running on it."""
    from infra.tracing import zipkin
    from tests.e2e.stand import a_stand, eventually

    tracing = not zipkin.missing()
    if tracing:
        zipkin.fetch()
    slow = {"executor-virtual": {"BERTH_SLOW": f"{SLOW_NODE}:2.5"}}
    with a_stand(env=slow, tracing=tracing, tls=True) as stand:
        if tracing:
            eventually(lambda: zipkin.is_ready(stand.stack.ports["tracing"]["ui"]))
        yield stand
