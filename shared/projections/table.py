"""A table whose rows are folded in Python: load the touched ones, change them, write them back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from asyncpg import Connection

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class RowTable(Generic[Row]):
    """`row` is a slotted dataclass whose fields are the columns; `types` are their SQL types."""

    name: str
    row: type[Row]
    key: str
    types: dict[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.types)

    def select(self) -> str:
        """Names are constants of this package; values travel as parameters."""
        names = ", ".join(self.columns)
        return f"SELECT {names} FROM {self.name} WHERE {self.key} = ANY($1)"  # noqa: S608

    def upsert(self) -> str:
        names = ", ".join(self.columns)
        arrays = ", ".join(f"${i}::{t}[]" for i, t in enumerate(self.types.values(), 1))
        sets = ", ".join(f"{c} = excluded.{c}" for c in self.columns if c != self.key)
        return (
            f"INSERT INTO {self.name} ({names}) SELECT * FROM unnest({arrays}) "  # noqa: S608
            f"ON CONFLICT ({self.key}) DO UPDATE SET {sets}"
        )

    async def load(self, conn: Connection, keys: Iterable[str]) -> dict[str, Row]:
        """The rows that exist, by key."""
        found = await conn.fetch(self.select(), list(keys))
        return {str(record[self.key]): self.row(**dict(record.items())) for record in found}

    async def store(self, conn: Connection, rows: Iterable[Row]) -> None:
        rows = list(rows)
        if not rows:
            return
        columns: list[list[Any]] = [[getattr(r, c) for r in rows] for c in self.columns]
        await conn.execute(self.upsert(), *columns)


def check(table: RowTable[Any]) -> None:
    """A table and its row class name the same columns in the same order."""
    named = tuple(f.name for f in fields(table.row))
    if named != table.columns:
        raise TypeError(f"{table.name}: row has {named}, table has {table.columns}")
