"""Read models of played ledgers in a real Postgres: their size, and the time of the projector."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

from benchmarks.parts.year.volumes import ledgers_in
from infra.postgres import server as postgres
from shared.bus.memory import MemoryBroker, MemoryLog
from shared.ledger.partition import TP
from shared.projections import cursor
from shared.projections.database import connect
from shared.projections.migrate import migrate
from shared.projections.project import project
from shared.projections.source import Source, prefetch
from simulator.engine.lane import LANE

BATCH_RECORDS = 2_000
SIZE = "SELECT pg_database_size(current_database())"


def joined(brokers: Mapping[str, MemoryBroker]) -> MemoryBroker:
    """Return one broker with the ledgers of all, which must be of different services."""
    whole = MemoryBroker()
    for broker in brokers.values():
        for ledger in ledgers_in(broker):
            for entry in broker.entries(TP(ledger, LANE)):
                whole.append(TP(ledger, LANE), entry.value or b"", entry.key)
    return whole


async def project_all(broker: MemoryBroker, folder: Path) -> tuple[int, float]:
    """Project every ledger; return the bytes that the tables grew by, and the seconds."""
    server, dsn = await asyncio.to_thread(postgres.start, folder)
    try:
        await migrate(dsn)
        conn = await connect(dsn)
        try:
            empty = await conn.fetchval(SIZE)
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
            return await conn.fetchval(SIZE) - empty, round(seconds, 1)
        finally:
            await conn.close()
    finally:
        await asyncio.to_thread(server.stop)
