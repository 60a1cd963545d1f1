"""Batches of accepted records become rows: cursors and all rows in one transaction."""

from __future__ import annotations

from typing import Any

from asyncpg import Connection

from shared.bus.failpoints import FAILPOINTS
from shared.projections import answers, cursor, nodes, timeline
from shared.projections.audit import AUDIT, entries_of
from shared.projections.ledger_events import LedgerBatch, LedgerEvent
from shared.projections.models import Projection, touched

DEAD = "input.rejected.v1"
PLACED = "job.placed.v1"
RELEASED = "allocation.released.v1"

Work = dict[str, tuple[Projection, list[tuple[str, LedgerEvent]]]]


LOCK = 0x7072_6F6A
"""Held shared by whoever projects, exclusively by a rebuild that swaps the schema."""
SHARE = f"SELECT pg_advisory_xact_lock_shared({LOCK})"


async def project(conn: Connection, batches: list[LedgerBatch], *, locked: bool = False) -> None:
    """Raises CursorMoved, and writes nothing, unless each batch follows what is stored.

    Each column comes from one ledger, so batches of several ledgers may be folded together.
    `locked`: the caller holds LOCK exclusively, on another connection.
    """
    lines = [line for batch in batches for line in batch.events]
    async with conn.transaction():
        if not locked:
            await conn.execute(SHARE)
        for batch in batches:
            await cursor.advance(conn, batch)
        await write_rows(conn, lines)
        FAILPOINTS.pass_by("before_commit")
    FAILPOINTS.pass_by("after_commit")


async def write_rows(conn: Connection, lines: list[LedgerEvent]) -> None:
    await timeline.project(conn, lines)
    for model, work in grouped(lines).values():
        await fold(conn, model, work)
    await leases(conn, lines)
    dead = [answers.dead_letter(line) for line in lines if line.type == DEAD]
    await answers.DEAD.store(conn, dead)
    await AUDIT.store(conn, [entry for line in lines for entry in entries_of(line)])


def grouped(lines: list[LedgerEvent]) -> Work:
    work: Work = {}
    for line in lines:
        for model in touched(line):
            entry = work.setdefault(model.table.name, (model, []))
            entry[1].append((model.key(line), line))
    return work


async def fold(conn: Connection, model: Projection, work: list[tuple[str, LedgerEvent]]) -> None:
    rows: dict[str, Any] = await model.table.load(conn, {key for key, _ in work})
    for key, line in work:
        row = rows.get(key)
        if row is None:
            row = rows[key] = model.fresh(key, line)
        model.fold(row, line)
    await model.table.store(conn, rows.values())


async def leases(conn: Connection, lines: list[LedgerEvent]) -> None:
    """A lease and its release often lie in one batch: only older ones are read back."""
    made: dict[str, nodes.Lease] = {}
    ended: dict[str, LedgerEvent] = {}
    for line in lines:
        if line.ledger != "placement":
            continue
        if line.type == PLACED:
            made.update((row.allocation_id, row) for row in nodes.leases_of(line))
        elif line.type == RELEASED:
            ended[line.data["allocation_id"]] = line
    older = [key for key in ended if key not in made]
    if older:
        made.update(await nodes.LEASE.load(conn, older))
    for key, line in ended.items():
        if row := made.get(key):
            nodes.release(row, line)
    await nodes.LEASE.store(conn, made.values())
