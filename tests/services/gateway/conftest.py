"""One stack for the tests of this folder; they keep apart by tenants, keys and ids."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from infra.postgres import server as postgres
from shared.projections.migrate import migrate
from shared.projections.roles import GATEWAY
from tests.services.gateway.stack import (
    Stack,
    as_gateway,
    fill_access,
    ready,
    start_broker,
    start_gateway,
)
from tests.shared.oidc.identity import Provider, provider


@pytest.fixture(scope="session")
def gateway_dsn(postgres_dir: Path) -> str:
    """A database of its own: the fuzzer has such a stack too."""
    name = f"gateway_{uuid4().hex[:12]}"
    postgres.create_database(postgres_dir, name)
    dsn = postgres.dsn(postgres_dir, name)
    asyncio.run(migrate(dsn, logins={GATEWAY: as_gateway(dsn)}))
    return dsn


@pytest.fixture(scope="session")
def stack(gateway_dsn: str) -> Iterator[Stack]:
    with tempfile.TemporaryDirectory(prefix="berth-gw-") as name:
        folder = Path(name)
        broker, kafka = start_broker(folder)
        ledgers = asyncio.run(fill_access(kafka))
        running, url = start_gateway(folder, kafka, as_gateway(gateway_dsn))
        try:
            asyncio.run(ready(url))
            yield Stack(kafka, url, gateway_dsn, folder, ledgers, broker)
        finally:
            running.stop()
            broker.stop()


@pytest.fixture
def idp(tmp_path: Path) -> Iterator[Provider]:
    with provider(tmp_path) as made:
        yield made
