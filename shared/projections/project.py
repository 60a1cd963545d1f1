"""Project batches of accepted records: rows and cursors change in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asyncpg import Connection

from shared.bus.failpoints import FAILPOINTS
from shared.projections import cursor, llm_fairness, llm_usage, nodes, timeline
from shared.projections.audit import AUDIT, audit_rows
from shared.projections.job_usage import UsageChanges, read_prices
from shared.projections.ledger_events import LedgerBatch, LedgerEvent
from shared.projections.models import PLACEMENT, Projection, projections_of

JOB_PLACED = "job.placed.v1"
ALLOCATION_RELEASED = "allocation.released.v1"

Work = dict[str, tuple[Projection, list[tuple[str, LedgerEvent]]]]
"""Table to its projection, and the events with the keys of their rows."""

LOCK = 0x7072_6F6A
"""Advisory lock: shared by projectors, exclusive for a rebuild that swaps the schema."""
SHARE = f"SELECT pg_advisory_xact_lock_shared({LOCK})"


async def project(conn: Connection, batches: list[LedgerBatch], *, locked: bool = False) -> None:
    """Store batches; raises CursorMoved, and writes nothing, unless each follows its cursor.

    Each column comes from one ledger, so batches of several ledgers may be folded together.
    `locked`: the caller holds LOCK exclusively, on another connection.
    """
    events = [event for batch in batches for event in batch.events]
    async with conn.transaction():
        if not locked:
            await conn.execute(SHARE)
        for batch in batches:
            await cursor.advance(conn, batch)
        await write_rows(conn, events)
        FAILPOINTS.hit("before_commit")
    FAILPOINTS.hit("after_commit")


async def write_rows(conn: Connection, events: list[LedgerEvent]) -> None:
    """Fold the events into all read models."""
    await timeline.project(conn, events)
    begun = await llm_usage.store_usage(conn, events)
    usage = UsageChanges(await read_prices(conn, events))
    for projection, work in group_by_table(events).values():
        await fold_rows(conn, projection, work, usage.note if projection is PLACEMENT else None)
    await usage.store(conn)
    await llm_fairness.store_fairness(conn, events)
    await llm_usage.drop_old(conn, begun)
    await llm_fairness.roll_up(conn, begun)
    await store_allocations(conn, events)
    await AUDIT.store(conn, [row for event in events for row in audit_rows(event)])


def group_by_table(events: list[LedgerEvent]) -> Work:
    work: Work = {}
    for event in events:
        for projection in projections_of(event):
            _, keyed = work.setdefault(projection.table.name, (projection, []))
            keyed.append((projection.key(event), event))
    return work


async def fold_rows(
    conn: Connection,
    projection: Projection,
    work: list[tuple[str, LedgerEvent]],
    note: Callable[[Any, LedgerEvent], None] | None,
) -> None:
    """Fold events into their rows; `note` is called with each row and event before it is folded."""
    rows: dict[str, Any] = await projection.table.load(conn, {key for key, _ in work})
    for key, event in work:
        row = rows.get(key)
        if row is None:
            row = rows[key] = projection.new_row(key, event)
        if note is not None:
            note(row, event)
        projection.fold(row, event)
    await projection.table.store(conn, rows.values())


async def store_allocations(conn: Connection, events: list[LedgerEvent]) -> None:
    """Store allocations and their releases, often both in one batch: only older ones are loaded."""
    rows: dict[str, nodes.AllocationRow] = {}
    releases: dict[str, LedgerEvent] = {}
    for event in events:
        if event.ledger != "placement":
            continue
        if event.type == JOB_PLACED:
            rows.update((row.allocation_id, row) for row in nodes.allocation_rows(event))
        elif event.type == ALLOCATION_RELEASED:
            releases[event.data["allocation_id"]] = event
    older = [key for key in releases if key not in rows]
    if older:
        rows.update(await nodes.ALLOCATION.load(conn, older))
    for key, event in releases.items():
        if row := rows.get(key):
            nodes.release_allocation(row, event)
    await nodes.ALLOCATION.store(conn, rows.values())
