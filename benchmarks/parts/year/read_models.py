"""Read models of played ledgers in a real Postgres: their size, and the time of the projector."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from contextlib import aclosing
from pathlib import Path

from benchmarks.parts.year.options import YEAR_DAYS
from benchmarks.parts.year.volumes import ledgers_in
from infra.postgres import server as postgres
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.partition import TP
from shared.projections import cursor
from shared.projections.database import connect
from shared.projections.llm_usage import DAY_MS, KEPT_HOURS_MS, KEPT_REQUESTS_MS
from shared.projections.migrate import migrate
from shared.projections.project import project
from shared.projections.records import TABLES
from shared.projections.source import Source, prefetch
from simulator.engine.lane import LANE

BATCH_RECORDS = 2_000
SIZES = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
"""
KEPT_DAYS = {"llm_request": KEPT_REQUESTS_MS / DAY_MS, "llm_usage": KEPT_HOURS_MS / DAY_MS}
"""Days after which the projector always drops the rows of a table."""
HISTORY_DAYS = 90
"""Days of `BERTH_RECORDS_D`, and of `BERTH_JOB_HISTORY_D`, for which a size is reckoned."""
MONTH_DAYS = 31


def joined(brokers: Mapping[str, MemoryBroker]) -> MemoryBroker:
    """Return one broker with the ledgers of all, which must be of different services."""
    whole = MemoryBroker()
    for broker in brokers.values():
        for ledger in ledgers_in(broker):
            for entry in broker.entries(TP(ledger, LANE)):
                whole.append(TP(ledger, LANE), entry.value or b"", entry.key)
    return whole


def yearly(
    grown: Mapping[str, float], *, days: float = YEAR_DAYS, tables: Collection[str] = TABLES
) -> dict[str, float]:
    """Return the bytes of each table after a year, from what it grows by in a day.

    Rows of these tables are kept for so many days, and until the end of their month.
    """
    kept = {**KEPT_DAYS, **dict.fromkeys(tables, min(days + MONTH_DAYS, YEAR_DAYS))}
    return {table: volume * kept.get(table, YEAR_DAYS) for table, volume in grown.items()}


async def project_all(broker: MemoryBroker, folder: Path) -> tuple[dict[str, int], float]:
    """Project every ledger; return the bytes that each table grew by, and the seconds."""
    server, dsn = await asyncio.to_thread(postgres.start, folder)
    try:
        await migrate(dsn)
        conn = await connect(dsn)
        try:
            empty = dict(await conn.fetch(SIZES))
            began_s = time.perf_counter()
            source = Source(MemoryLog(broker), 1, await cursor.read(conn))
            await source.start()
            async with aclosing(prefetch(lambda: source.poll(0.0, BATCH_RECORDS))) as polls:
                async for batches in polls:
                    if not batches and source.caught_up:
                        break
                    await project(conn, batches)
            await source.stop()
            seconds = time.perf_counter() - began_s
            sizes = dict(await conn.fetch(SIZES))
            return {t: size - empty[t] for t, size in sizes.items()}, round(seconds, 1)
        finally:
            await conn.close()
    finally:
        await asyncio.to_thread(server.stop)
