"""Builds all read models anew beside the live ones, compares them by hash, and swaps them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from asyncpg import Connection

from shared.bus.log import Log
from shared.ledger.reader import Cursor
from shared.projections import cursor
from shared.projections.database import SCHEMA, connect
from shared.projections.migrate import migrate
from shared.projections.models import TABLES
from shared.projections.project import LOCK, project
from shared.projections.source import LedgerPartition, Source, prefetch

BESIDE = "berth_rebuild"
TABLE_NAMES = ("job_event", *(table.name for table in TABLES))
RECORDS = 3000
QUIET_S = 0.1
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """Events folded, and each table's content hash before and after."""

    events: int
    live: dict[str, str]
    rebuilt: dict[str, str]
    swapped: bool

    @property
    def different(self) -> list[str]:
        return sorted(t for t in self.live if self.live[t] != self.rebuilt[t])


async def hashes(conn: Connection, schema: str) -> dict[str, str]:
    """Row count and sum of row hashes of each table: equal contents, equal text, in any order."""
    found: dict[str, str] = {}
    for table in TABLE_NAMES:
        row = await conn.fetchrow(
            f"SELECT count(*) AS n, sum(hashtextextended(t::text, 0)::numeric) AS h "  # noqa: S608
            f'FROM "{schema}".{table} t'
        )
        found[table] = f"{row['n']}:{row['h']}"
    return found


async def rebuild(
    dsn: str, log: Log, partitions: int, *, swap: bool, progress: Progress = lambda _: None
) -> RebuildResult:
    """Folds all ledgers from offset 0 to exactly where the live read models stand.

    The live projector waits only while the last records are folded and the tables compared.
    """
    live = await connect(dsn)
    try:
        await live.execute(f'DROP SCHEMA IF EXISTS "{BESIDE}" CASCADE')
        await migrate(dsn, BESIDE)
        beside = await connect(dsn, BESIDE)
        source = Source(log, partitions)
        await source.start()
        try:
            await beside.execute("SET synchronous_commit = off")
            events = await fold_to(beside, source, await cursor.read(live), progress)
            await live.execute("SELECT pg_advisory_lock($1)", LOCK)
            events += await fold_to(beside, source, await cursor.read(live), progress, shared=False)
            result = await compare(live, events, swap)
        finally:
            await source.stop()
            await beside.close()
        return result
    finally:
        await live.close()


async def fold_to(
    conn: Connection,
    source: Source,
    limits: Mapping[LedgerPartition, Cursor],
    progress: Progress,
    *,
    shared: bool = True,
) -> int:
    events = 0
    async with aclosing(prefetch(lambda: source.poll(QUIET_S, RECORDS, limits))) as found:
        async for batches in found:
            if not batches and source.reached(limits):
                break
            await project(conn, batches, locked=not shared)
            count = sum(len(batch.events) for batch in batches)
            events += count
            progress(count)
    return events


async def compare(live: Connection, events: int, swap: bool) -> RebuildResult:
    before, after = await hashes(live, SCHEMA), await hashes(live, BESIDE)
    if swap:
        async with live.transaction():
            await live.execute(f'DROP SCHEMA "{SCHEMA}" CASCADE')
            await live.execute(f'ALTER SCHEMA "{BESIDE}" RENAME TO "{SCHEMA}"')
    else:
        await live.execute(f'DROP SCHEMA "{BESIDE}" CASCADE')
    return RebuildResult(events, before, after, swap)
