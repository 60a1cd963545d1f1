"""Migrations are atomic, and run beside transactions that use the tables."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.projections.database import connect
from shared.projections.migrate import migrate

WAITS_FOR_TENANT = """
SELECT true FROM pg_locks WHERE NOT granted AND relation = 'berth.tenant'::regclass
"""


async def test_a_migration_gives_way_to_transactions_that_use_the_tables(database: str) -> None:
    await migrate(database)
    conn, watch = await connect(database), await connect(database)
    async with conn.transaction():
        await conn.fetch("SELECT FROM berth.tenant")
        migrating = asyncio.create_task(migrate(database))
        # It has locked the tables of the first letters and waits for this one: a deadlock without a
        # lock timeout.
        while not await watch.fetchval(WAITS_FOR_TENANT):
            await asyncio.sleep(0.01)
        await conn.execute("UPDATE berth.command SET partition = partition")
        assert not migrating.done()
    await migrating
    await conn.close()
    await watch.close()


@pytest.mark.process
async def test_a_migration_without_a_server_ends_with_a_message(tmp_path: Path) -> None:
    environment = os.environ | {"BERTH_POSTGRES": f"postgresql://berth@/berth?host={tmp_path}"}
    program = [sys.executable, "-m", "shared.projections.migrate"]
    process = await asyncio.to_thread(
        subprocess.run, program, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    assert "nothing was changed" in process.stderr and "Traceback" not in process.stderr
