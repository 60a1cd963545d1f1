"""The cursor of each ledger partition, which moves in the transaction that writes the rows."""

from __future__ import annotations

from asyncpg import Connection

from shared.ledger.reader import Cursor
from shared.projections.ledger_events import LedgerBatch

READ = "SELECT ledger, partition, state FROM cursor"
BEGIN = "INSERT INTO cursor (ledger, partition, state) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
MOVE = "UPDATE cursor SET state = $3 WHERE ledger = $1 AND partition = $2 AND state = $4"


class CursorMoved(Exception):
    """Another projector moved the cursor: this one must read its cursors again."""


async def read(conn: Connection) -> dict[tuple[str, int], Cursor]:
    """Return the stored cursor of each ledger partition."""
    rows = await conn.fetch(READ)
    return {(r["ledger"], r["partition"]): Cursor.from_json(r["state"]) for r in rows}


async def advance(conn: Connection, batch: LedgerBatch) -> None:
    """Move a cursor to the end of the batch; raises CursorMoved if it is not at its beginning."""
    before, after = batch.before.to_json().decode(), batch.after.to_json().decode()
    if batch.before.seq == 0:
        status = await conn.execute(BEGIN, batch.ledger, batch.partition, after)
    else:
        status = await conn.execute(MOVE, batch.ledger, batch.partition, after, before)
    if not status.endswith(" 1"):
        raise CursorMoved(f"{batch.ledger}-{batch.partition} is not at offset {batch.before.next}")
