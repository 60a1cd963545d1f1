"""The columns of a table are the fields of its row class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from shared.projections.table import BigInt, RowTable, column_types


@dataclass(slots=True)
class ExampleRow:
    key: str
    count: int = 0
    at: BigInt = 0
    share: float = 0.0
    active: bool = True
    limit: float | None = None
    index: int | None = None


EXAMPLE = RowTable("example", ExampleRow, "key")


class RecordingConnection:
    """Records statements, and returns the rows that it was given."""

    def __init__(self, records: list[dict[str, object]] | None = None) -> None:
        self.records = records or []
        self.executed: list[tuple[object, ...]] = []

    async def execute(self, *call: object) -> None:
        self.executed.append(call)

    async def fetch(self, *call: object) -> list[dict[str, object]]:
        self.executed.append(call)
        return self.records


def test_sql_types_follow_from_the_annotations() -> None:
    assert EXAMPLE.types == {
        "key": "text",
        "count": "int",
        "at": "bigint",
        "share": "float8",
        "active": "bool",
        "limit": "float8",
        "index": "int",
    }


def test_a_field_without_an_sql_type_is_an_error() -> None:
    @dataclass(slots=True)
    class BadRow:
        key: str
        labels: Any

    with pytest.raises(KeyError):
        column_types(BadRow)


def test_the_statements_name_every_column() -> None:
    assert EXAMPLE.select == (
        "SELECT key, count, at, share, active, limit, index FROM example WHERE key = ANY($1)"
    )
    assert EXAMPLE.upsert == (
        "INSERT INTO example (key, count, at, share, active, limit, index) SELECT * FROM "
        "unnest($1::text[], $2::int[], $3::bigint[], $4::float8[], $5::bool[], $6::float8[], "
        "$7::int[]) ON CONFLICT (key) DO UPDATE SET count = excluded.count, at = excluded.at, "
        "share = excluded.share, active = excluded.active, limit = excluded.limit, "
        "index = excluded.index"
    )


async def test_rows_are_stored_column_by_column_in_one_statement() -> None:
    conn = RecordingConnection()
    await EXAMPLE.store(conn, [ExampleRow("a", 1), ExampleRow("b", 2, at=7)])
    ((statement, *columns),) = conn.executed
    assert statement == EXAMPLE.upsert
    assert columns[:3] == [("a", "b"), (1, 2), (0, 7)]


async def test_without_rows_nothing_is_executed() -> None:
    conn = RecordingConnection()
    await EXAMPLE.store(conn, [])
    assert conn.executed == []


async def test_loaded_rows_are_keyed() -> None:
    record = {"key": "a", "count": 3, "at": 4, "share": 0.5, "active": False}
    conn = RecordingConnection([record | {"limit": None, "index": 1}])
    rows = await EXAMPLE.load(conn, {"a"})
    assert rows == {"a": ExampleRow("a", 3, 4, 0.5, False, None, 1)}
    assert conn.executed == [(EXAMPLE.select, ["a"])]
