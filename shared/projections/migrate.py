"""Brings the read models' schema to the newest version: `python -m shared.projections.migrate`."""

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

from shared.projections import roles
from shared.projections.database import SCHEMA
from shared.settings import read

LOCK = 0x6265727468
"""Two migrators at once take turns: Alembic itself does not lock."""
HERE = Path(__file__).parent / "migrations"
LOCK_TIMEOUT_MS = 500
"""Less than Postgres' `deadlock_timeout` (1 s): of a migrator and a projector that wait for each
other it is the migrator who gives way, and nobody's query queues behind it for longer."""
PATIENCE_S = 120.0
PAUSE_S = 0.25
IN_THE_WAY = {"40P01": "deadlock_detected", "55P03": "lock_not_available"}
"""Somebody works with the tables. It passes: all was undone, and is tried again."""


def upgrade(connection: Connection, schema: str, logins: Mapping[str, str]) -> None:
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
    """Idempotent; all of it, or nothing, beside services that work. `dsn` is of an account that
    may make roles; `logins` are addresses of the services' roles, whose passwords they are given.

    Raises sqlalchemy.exc.DBAPIError: among others when a table was in use for `PATIENCE_S`.
    """
    # The address is the driver's own: SQLAlchemy does not know libpq's words for TLS.
    engine = create_async_engine(
        "postgresql+asyncpg://", poolclass=NullPool, async_creator=lambda: asyncpg.connect(dsn)
    )
    try:
        await _when_free(engine, schema, logins)
    finally:
        await engine.dispose()


async def _when_free(engine: AsyncEngine, schema: str, logins: Mapping[str, str]) -> None:
    loop = asyncio.get_running_loop()
    ends = loop.time() + PATIENCE_S
    while True:
        try:
            async with engine.begin() as connection:
                return await connection.run_sync(upgrade, schema, logins)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in IN_THE_WAY or loop.time() > ends:
                raise
        await asyncio.sleep(PAUSE_S)


class MigrateSettings(BaseModel):
    """The installation's own account, and what the services will be told of theirs."""

    postgres: str
    postgres_projector: str = ""
    postgres_gateway: str = ""


def main() -> None:
    settings = read(MigrateSettings, os.environ)
    told = {roles.PROJECTOR: settings.postgres_projector, roles.GATEWAY: settings.postgres_gateway}
    logins = {role: dsn for role, dsn in told.items() if dsn}
    try:
        asyncio.run(migrate(settings.postgres, logins=logins))
    except (DBAPIError, asyncpg.PostgresError, OSError) as error:
        reason = error.orig if isinstance(error, DBAPIError) else error
        sys.exit(f"The read models are as they were, for nothing could be migrated: {reason}")


if __name__ == "__main__":
    main()
