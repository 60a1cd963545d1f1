"""A connection that takes too long is terminated; the one of the folds reads no whole table."""

from __future__ import annotations

import asyncio

from shared.projections.database import connect_by_key, terminate_after
from shared.projections.jobs import PLACEMENT, PlacementRow
from tests.patience import PATIENCE_S

SCANS = "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'job_placement'"
"""Reads of the whole table in this transaction."""


class TerminableConnection:
    def __init__(self) -> None:
        self.terminated = asyncio.Event()

    def terminate(self) -> None:
        self.terminated.set()


async def test_a_block_that_takes_too_long_terminates_its_connection() -> None:
    conn = TerminableConnection()
    with terminate_after(conn, 0.001):
        await asyncio.wait_for(conn.terminated.wait(), timeout=PATIENCE_S)


async def test_a_block_in_time_leaves_its_connection_alone() -> None:
    conn = TerminableConnection()
    with terminate_after(conn, 0.001):
        pass
    await asyncio.sleep(0.005)
    assert not conn.terminated.is_set()


async def test_rows_of_a_table_without_statistics_are_loaded_by_an_index(database: str) -> None:
    conn = await connect_by_key(database)
    try:
        for _ in range(10):
            await PLACEMENT.load(conn, ["j1"])
        await PLACEMENT.store(conn, [PlacementRow(f"j{i}", 1) for i in range(2000)])
        async with conn.transaction():
            rows = await PLACEMENT.load(conn, [f"j{i}" for i in range(50)])
            scans = await conn.fetchval(SCANS)
    finally:
        await conn.close()
    assert (len(rows), scans) == (50, 0)
