"""A table whose rows are folded in Python: load the changed rows, fold, and store them again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from asyncpg import Connection

Row = TypeVar("Row")

BigInt = Annotated[int, "bigint"]
"""A column of 64 bits: times in ms, sums and offsets."""
SQL_TYPES: dict[object, str] = {str: "text", int: "int", float: "float8", bool: "bool"}


@dataclass(frozen=True, slots=True)
class RowTable(Generic[Row]):
    """A table with one column per field of `row`, a slotted dataclass."""

    name: str
    row: type[Row]
    key: str
    types: dict[str, str] = field(init=False)
    """SQL type of each column, in the order of the fields."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", column_types(self.row))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.types)

    def select(self) -> str:
        """Return the query of rows by key; all names in it are constants of this package."""
        names = ", ".join(self.columns)
        return f"SELECT {names} FROM {self.name} WHERE {self.key} = ANY($1)"  # noqa: S608

    def upsert(self) -> str:
        """Return the statement that stores rows, given one array per column."""
        names = ", ".join(self.columns)
        arrays = ", ".join(f"${i}::{t}[]" for i, t in enumerate(self.types.values(), 1))
        sets = ", ".join(f"{c} = excluded.{c}" for c in self.columns if c != self.key)
        return (
            f"INSERT INTO {self.name} ({names}) SELECT * FROM unnest({arrays}) "  # noqa: S608
            f"ON CONFLICT ({self.key}) DO UPDATE SET {sets}"
        )

    async def load(self, conn: Connection, keys: Iterable[str]) -> dict[str, Row]:
        """Return the stored rows among these keys, by key."""
        records = await conn.fetch(self.select(), list(keys))
        return {str(record[self.key]): self.row(**dict(record.items())) for record in records}

    async def store(self, conn: Connection, rows: Iterable[Row]) -> None:
        """Insert or update all rows with one statement."""
        rows = list(rows)
        if not rows:
            return
        columns: list[list[Any]] = [[getattr(r, c) for r in rows] for c in self.columns]
        await conn.execute(self.upsert(), *columns)


def column_types(row: type[Any]) -> dict[str, str]:
    """Return the SQL type of each field of a row class, by name; None in a union means NULL."""
    hints = get_type_hints(row, include_extras=True)
    return {name: _sql_type(hint) for name, hint in hints.items()}


def _sql_type(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        return str(get_args(hint)[1])
    present = [part for part in get_args(hint) if part is not type(None)] or [hint]
    return SQL_TYPES[present[0]]
