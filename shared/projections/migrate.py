"""Brings the read models' schema to the newest version: `python -m shared.projections.migrate`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import asyncpg
from alembic import command
from alembic.config import Config
from pydantic import BaseModel
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from shared.projections import roles
from shared.projections.database import SCHEMA
from shared.settings import read

LOCK = 0x6265727468
"""Two migrators at once take turns: Alembic itself does not lock."""
HERE = Path(__file__).parent / "migrations"


def upgrade(connection: Connection, schema: str, logins: Mapping[str, str]) -> None:
    connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
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
    """Idempotent; all of it, or nothing. `dsn` is of an account that may make roles.

    `logins` are addresses of the services' roles, whose passwords they are given.
    """
    # The address is the driver's own: SQLAlchemy does not know libpq's words for TLS.
    engine = create_async_engine(
        "postgresql+asyncpg://", poolclass=NullPool, async_creator=lambda: asyncpg.connect(dsn)
    )
    try:
        async with engine.begin() as connection:
            await connection.run_sync(upgrade, schema, logins)
    finally:
        await engine.dispose()


class MigrateSettings(BaseModel):
    """The installation's own account, and what the services will be told of theirs."""

    postgres: str
    postgres_projector: str = ""
    postgres_gateway: str = ""


def main() -> None:
    settings = read(MigrateSettings, os.environ)
    told = {roles.PROJECTOR: settings.postgres_projector, roles.GATEWAY: settings.postgres_gateway}
    logins = {role: dsn for role, dsn in told.items() if dsn}
    asyncio.run(migrate(settings.postgres, logins=logins))


if __name__ == "__main__":
    main()
