"""Migrate the schema of the read models: `python -m shared.projections.migrate`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import asyncpg
from alembic import command
from alembic.config import Config
from pydantic import BaseModel
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from shared.process.settings import read_settings
from shared.projections import roles
from shared.projections.database import SCHEMA

LOCK = 0x6265727468
"""Advisory lock that serialises migrators: Alembic itself does not lock."""
HERE = Path(__file__).parent / "migrations"
LOCK_TIMEOUT_MS = 500
"""Less than Postgres' `deadlock_timeout` (1 s): in a deadlock with a projector the migrator gives
way, and no query waits behind it for longer."""
RETRY_FOR_S = 120.0
PAUSE_S = 0.25
RETRYABLE = {"40P01": "deadlock_detected", "55P03": "lock_not_available"}
"""Errors while other transactions use the tables: the migration is rolled back and retried."""


def upgrade(connection: Connection, schema: str, logins: Mapping[str, str]) -> None:
    """Create the roles and bring the schema to the newest version, in the open transaction."""
    connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    connection.execute(text(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"))
    roles.make_roles(connection)
    roles.allow_logins(connection, logins)
    roles.take_over(connection, schema)
    connection.execute(text(f'SET LOCAL ROLE "{roles.OWNER}"'))
    connection.execute(text(f'SET LOCAL search_path TO "{schema}"'))
    config = Config()
    config.set_main_option("script_location", str(HERE))
    config.attributes["connection"] = connection
    config.attributes["schema"] = schema
    command.upgrade(config, "head")
    roles.secure(connection, schema)


async def migrate(
    dsn: str, schema: str = SCHEMA, logins: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Migrate atomically while services run; idempotent.

    `dsn` is of an account that may create roles. `logins` maps roles of services to their
    addresses, whose passwords the roles get.

    Raises sqlalchemy.exc.DBAPIError, also if a table was in use for `RETRY_FOR_S`.
    """
    # The driver reads the address itself: SQLAlchemy does not know libpq's TLS parameters.
    engine = create_async_engine(
        "postgresql+asyncpg://", poolclass=NullPool, async_creator=lambda: asyncpg.connect(dsn)
    )
    try:
        await _retry_upgrade(engine, schema, logins)
    finally:
        await engine.dispose()


async def _retry_upgrade(engine: AsyncEngine, schema: str, logins: Mapping[str, str]) -> None:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + RETRY_FOR_S
    while True:
        try:
            async with engine.begin() as connection:
                return await connection.run_sync(upgrade, schema, logins)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in RETRYABLE or loop.time() > deadline_s:
                raise
        await asyncio.sleep(PAUSE_S)


class MigrateSettings(BaseModel):
    """Addresses of the installation's own account and of the services' roles."""

    postgres: str
    postgres_projector: str = ""
    postgres_gateway: str = ""
    postgres_notifier: str = ""


def main() -> None:
    settings = read_settings(MigrateSettings, os.environ)
    addresses = {
        roles.PROJECTOR: settings.postgres_projector,
        roles.GATEWAY: settings.postgres_gateway,
        roles.NOTIFIER: settings.postgres_notifier,
    }
    logins = {role: dsn for role, dsn in addresses.items() if dsn}
    try:
        asyncio.run(migrate(settings.postgres, logins=logins))
    except (DBAPIError, asyncpg.PostgresError, OSError) as error:
        reason = error.orig if isinstance(error, DBAPIError) else error
        sys.exit(f"cannot migrate the read models: {reason}; nothing was changed")


if __name__ == "__main__":
    main()
