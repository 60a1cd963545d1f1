"""Rebuild all read models in a second schema, compare them by hash with the live ones, and swap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from asyncpg import Connection

from shared.bus.logs.log import Log
from shared.ledger.reader import Cursor
from shared.projections import cursor
from shared.projections.database import SCHEMA, connect, connect_by_key
from shared.projections.migrate import migrate
from shared.projections.models import TABLES
from shared.projections.project import LOCK, project
from shared.projections.records import leave_out, read_marks
from shared.projections.roles import NOTIFIER_TABLES
from shared.projections.source import LedgerPartition, Source, prefetch

REBUILD_SCHEMA = "berth_rebuild"
TABLE_NAMES = ("job_event", *(table.name for table in TABLES))
MAX_RECORDS = 3000
WAIT_S = 0.1
MISSING = "missing"
"""In place of the hash of a table that the schema does not have."""


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """The number of events folded, and the content hash of each table in either schema.

    `left` rows by table were removed from what was rebuilt: they left the live tables by their
    retention.
    """

    events: int
    live: dict[str, str]
    rebuilt: dict[str, str]
    swapped: bool
    left: dict[str, int] = field(default_factory=dict)
    recorded_left: dict[str, int] = field(default_factory=dict)
    """Rows of which the live schema says that they left; fewer than `left`: some were lost."""

    @property
    def lost(self) -> set[str]:
        """Return the tables of which more rows are missing than have left."""
        return {t for t, rows in self.left.items() if rows != self.recorded_left[t]}

    @property
    def different(self) -> list[str]:
        """Return the tables whose contents differ."""
        return sorted(self.lost | {t for t in self.live if self.live[t] != self.rebuilt[t]})


async def hashes(conn: Connection, schema: str) -> dict[str, str]:
    """Return row count and sum of row hashes of each table, independent of the order of rows."""
    result: dict[str, str] = {}
    for table in TABLE_NAMES:
        if not await has_table(conn, schema, table):
            result[table] = MISSING
            continue
        row = await conn.fetchrow(
            f"SELECT count(*) AS n, sum(hashtextextended(t::text, 0)::numeric) AS h "  # noqa: S608
            f'FROM "{schema}".{table} t'
        )
        result[table] = f"{row['n']}:{row['h']}"
    return result


async def has_table(conn: Connection, schema: str, table: str) -> bool:
    is_there: bool = await conn.fetchval(
        "SELECT to_regclass(format('%I.%I', $1::text, $2::text)) IS NOT NULL", schema, table
    )
    return is_there


async def rebuild(
    dsn: str,
    log: Log,
    partitions: int,
    *,
    swap: bool,
    report_events: Callable[[int], None] = lambda _: None,
) -> RebuildResult:
    """Fold all ledgers from offset 0 exactly to the cursors of the live read models.

    The live projector is blocked only while the last records are folded and the tables compared.
    """
    live = await connect(dsn)
    try:
        await live.execute(f'DROP SCHEMA IF EXISTS "{REBUILD_SCHEMA}" CASCADE')
        await migrate(dsn, REBUILD_SCHEMA)
        rebuilt = await connect_by_key(dsn, REBUILD_SCHEMA)
        source = Source(log, partitions)
        await source.start()
        try:
            await rebuilt.execute("SET synchronous_commit = off")
            events = await fold_to(rebuilt, source, await cursor.read(live), report_events)
            await live.execute("SELECT pg_advisory_lock($1)", LOCK)
            events += await fold_to(
                rebuilt, source, await cursor.read(live), report_events, shared=False
            )
            result = await compare(live, events, swap)
        finally:
            await source.stop()
            await rebuilt.close()
        return result
    finally:
        await live.close()


async def fold_to(
    conn: Connection,
    source: Source,
    limits: Mapping[LedgerPartition, Cursor],
    report_events: Callable[[int], None],
    *,
    shared: bool = True,
) -> int:
    """Project all records up to the limits; return the number of events.

    `report_events` is called with 0 before the first record is read, then with those of each batch.
    """
    events = 0
    report_events(0)
    async with aclosing(prefetch(lambda: source.poll(WAIT_S, MAX_RECORDS, limits))) as polls:
        async for batches in polls:
            if not batches and source.has_reached(limits):
                break
            await project(conn, batches, locked=not shared)
            count = sum(len(batch.events) for batch in batches)
            events += count
            report_events(count)
    return events


async def compare(live: Connection, events: int, swap: bool) -> RebuildResult:
    """Hash both schemas, then swap them or drop the rebuilt one.

    What left the live schema by its retention leaves the rebuilt one too. Where more is missing,
    which rows have left is not known: then the rebuilt schema keeps all, and what had left leaves
    again, after another export. The tables of the notifier, which are no read models, move into
    the schema that stays.
    """
    leaving = live.transaction()
    await leaving.start()
    before = await hashes(live, SCHEMA)
    is_whole = MISSING not in before.values() and await has_table(live, SCHEMA, "retention")
    left, recorded = {}, {}
    if is_whole:
        left = await leave_out(live, SCHEMA, REBUILD_SCHEMA)
        recorded = {table: mark.row_count for table, mark in (await read_marks(live)).items()}
    after = await hashes(live, REBUILD_SCHEMA)
    result = RebuildResult(events, before, after, swap, left, recorded)
    if result.lost:
        await leaving.rollback()
    else:
        await leaving.commit()
    if swap:
        await _swap(live)
    else:
        await live.execute(f'DROP SCHEMA "{REBUILD_SCHEMA}" CASCADE')
    return result


async def _swap(live: Connection) -> None:
    async with live.transaction():
        for table in NOTIFIER_TABLES:
            if await has_table(live, SCHEMA, table):
                await live.execute(f'DROP TABLE "{REBUILD_SCHEMA}".{table}')
                await live.execute(f'ALTER TABLE "{SCHEMA}".{table} SET SCHEMA "{REBUILD_SCHEMA}"')
        await live.execute(f'DROP SCHEMA "{SCHEMA}" CASCADE')
        await live.execute(f'ALTER SCHEMA "{REBUILD_SCHEMA}" RENAME TO "{SCHEMA}"')
