"""A notifier process on a real broker and a real Postgres, and ledgers that a test writes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from infra.machine.process import Running, spawn
from infra.postgres import server as postgres
from shared.bus.clock import now_ms
from shared.contracts.access import TenantRegistered
from shared.contracts.base import Event
from shared.contracts.pools import PoolConfigured
from shared.contracts.secrets import MAIL, SIGNING, SecretStored
from shared.contracts.webhooks import WebhookCreated
from shared.process.connection import Connection
from shared.projections.database import connect
from shared.projections.migrate import migrate
from shared.projections.roles import NOTIFIER
from shared.secrets.secret_box import seal_value
from shared.secrets.secret_keys import FILE, SecretKeys, make_keys
from tests.broker_clients import log_of
from tests.embedded_broker import embedded_broker
from tests.patience import PATIENCE_S
from tests.services.publisher.ledgers import Ledgers

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


@dataclass
class House:
    """The parts around a notifier, which a test starts and kills."""

    folder: Path
    kafka: str
    dsn: str
    ledgers: Ledgers
    conn: asyncpg.Connection
    version: int = 0

    def start(self, **more: str) -> Running:
        env = {
            **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
            "BERTH_KAFKA": self.kafka,
            "BERTH_DATA": str(self.folder / "data"),
            "BERTH_IDEMPOTENT": "0",
            "BERTH_PARTITIONS": "1",
            "BERTH_POSTGRES": self.dsn,
            "BERTH_SECRET_KEYS": str(self.folder / FILE),
            "BERTH_PUBLIC_URL": "https://berth.example.org",
            "BERTH_WEBHOOK_NETWORKS": "127.0.0.0/8",
            **more,
        }
        command = [sys.executable, "-W", "error", "-m", "services.notifier"]
        return spawn("notifier", command, self.folder / "notifier.log", env)

    async def append(self, ledger: str, *events: Event, at: int = 0) -> None:
        await self.ledgers.append(ledger, 0, *events, at=at or now_ms())

    async def hook(self, name: str, url: str, tenant: str = "ada", events: str = "failed") -> None:
        created = WebhookCreated.model_validate(
            {
                "tenant": tenant,
                "name": name,
                "url": url,
                "events": events.split(","),
                "created_by": "key:a",
                "created_at": now_ms() - 1000,
            }
        )
        await self.append("access", created, self._sealed(tenant, SIGNING + name, SECRET))

    async def address(self, user: str, address: str, tenant: str = "ada") -> None:
        await self.append("access", self._sealed(tenant, MAIL + user, address))

    async def target(self, name: str, tenant: str = "ada") -> asyncpg.Record | None:
        statement = "SELECT * FROM notification_target WHERE tenant = $1 AND target = $2"
        return await self.conn.fetchrow(statement, tenant, name)

    async def reached(self, name: str, **values: object) -> asyncpg.Record:
        """Wait until the row of a target has these values; return it."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                row = await self.target(name)
                if row is not None and all(row[key] == value for key, value in values.items()):
                    return row
                await asyncio.sleep(0.05)

    def log(self) -> str:
        return (self.folder / "notifier.log").read_text()

    def _sealed(self, tenant: str, name: str, value: str) -> SecretStored:
        self.version += 1
        keys = SecretKeys(self.folder / FILE)
        return SecretStored(
            tenant=tenant,
            name=name,
            version=self.version,
            sealed=seal_value(keys, tenant, name, self.version, value),
            set_by="key:a",
            set_at=now_ms(),
        )


@asynccontextmanager
async def house(folder: Path, postgres_dir: Path, database: str) -> AsyncIterator[House]:
    """Yield the parts, with two tenants and the pool `gpu` in lane 0."""
    name = database.partition("@/")[2].partition("?")[0]
    dsn = postgres.dsn(postgres_dir, name, NOTIFIER)
    await migrate(database, logins={NOTIFIER: dsn})
    make_keys(folder / FILE)
    with embedded_broker(folder) as kafka:
        bus = log_of(Connection(kafka, idempotent=False))
        conn = await connect(database)
        parts = House(folder, kafka, dsn, Ledgers(bus), conn)
        await parts.append(
            "access",
            PoolConfigured(pool="gpu", partition=0),
            *(TenantRegistered(tenant=tenant, default_pool="gpu") for tenant in ("ada", "eve")),
        )
        try:
            yield parts
        finally:
            await conn.close()
            await bus.stop()
