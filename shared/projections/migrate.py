"""Brings the read models' schema to the newest version: `python -m shared.projections.migrate`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from alembic import command
from alembic.config import Config
from pydantic import BaseModel
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from shared.projections.database import SCHEMA
from shared.settings import read

LOCK = 0x6265727468
"""Two migrators at once take turns: Alembic itself does not lock."""
HERE = Path(__file__).parent / "migrations"


def engine_url(dsn: str) -> str:
    return dsn.replace("postgresql://", "postgresql+asyncpg://", 1)


def upgrade(connection: Connection, schema: str) -> None:
    connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))
    connection.execute(text(f'SET LOCAL search_path TO "{schema}"'))
    config = Config()
    config.set_main_option("script_location", str(HERE))
    config.attributes["connection"] = connection
    config.attributes["schema"] = schema
    command.upgrade(config, "head")


async def migrate(dsn: str, schema: str = SCHEMA) -> None:
    """Idempotent; all of it, or nothing."""
    engine = create_async_engine(engine_url(dsn), poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(upgrade, schema)
    finally:
        await engine.dispose()


class MigrateSettings(BaseModel):
    """Compose gives the address as a file, because it holds a password."""

    postgres: str


def main() -> None:
    asyncio.run(migrate(read(MigrateSettings, os.environ).postgres))


if __name__ == "__main__":
    main()
