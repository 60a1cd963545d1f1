"""A cursor moves only from where its batch begins."""

from __future__ import annotations

import pytest

from shared.ledger.reader import Cursor
from shared.projections.cursor import BEGIN, MOVE, CursorMoved, advance, read
from shared.projections.ledger_events import LedgerBatch

FIRST = Cursor(5, 3, "placement-0-3", 4, 1_000, {"reports-0": 7})
SECOND = Cursor(9, 6, "placement-0-6", 8, 2_000, {"reports-0": 9})


class CursorTable:
    """Answers as Postgres would: with the number of changed rows."""

    def __init__(self, changed: int, rows: list[dict[str, object]] | None = None) -> None:
        self.status = f"UPDATE {changed}"
        self.rows = rows or []
        self.executed: list[tuple[object, ...]] = []

    async def execute(self, *call: object) -> str:
        self.executed.append(call)
        return self.status

    async def fetch(self, _: str) -> list[dict[str, object]]:
        return self.rows


async def test_the_first_batch_of_a_partition_inserts_its_cursor() -> None:
    conn = CursorTable(1)
    await advance(conn, LedgerBatch("placement", 0, Cursor(), FIRST, []))
    assert conn.executed == [(BEGIN, "placement", 0, FIRST.to_json().decode())]


async def test_a_later_batch_moves_the_cursor_from_its_beginning() -> None:
    conn = CursorTable(1)
    await advance(conn, LedgerBatch("placement", 0, FIRST, SECOND, []))
    after, before = SECOND.to_json().decode(), FIRST.to_json().decode()
    assert conn.executed == [(MOVE, "placement", 0, after, before)]


@pytest.mark.parametrize("before", [Cursor(), FIRST])
async def test_a_cursor_at_another_position_is_an_error(before: Cursor) -> None:
    with pytest.raises(CursorMoved, match=f"placement-0 is not at offset {before.next}"):
        await advance(CursorTable(0), LedgerBatch("placement", 0, before, SECOND, []))


async def test_stored_cursors_are_read_back() -> None:
    row = {"ledger": "placement", "partition": 0, "state": FIRST.to_json().decode()}
    assert await read(CursorTable(0, [row])) == {("placement", 0): FIRST}
