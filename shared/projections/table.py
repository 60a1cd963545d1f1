"""A table whose rows are folded in Python: load the changed rows, fold, and store them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
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
    columns: tuple[str, ...] = field(init=False)
    select: str = field(init=False)
    """The query of rows by key; all names in it are constants of this package."""
    upsert: str = field(init=False)
    """The statement that stores rows, given one array per column."""
    values: Callable[[Row], tuple[Any, ...]] = field(init=False)
    """Returns the values of a row, in the order of the columns."""

    def __post_init__(self) -> None:
        types = column_types(self.row)
        names = ", ".join(types)
        derived = {
            "types": types,
            "columns": tuple(types),
            "select": f"SELECT {names} FROM {self.name} WHERE {self.key} = ANY($1)",  # noqa: S608
            "upsert": upsert_of(self.name, self.key, types),
            "values": attrgetter(*types),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    async def load(self, conn: Connection, keys: Iterable[str]) -> dict[str, Row]:
        """Return the stored rows among these keys, by key."""
        records = await conn.fetch(self.select, list(keys))
        return {str(record[self.key]): self.row(*record.values()) for record in records}

    async def store(self, conn: Connection, rows: Iterable[Row]) -> None:
        """Insert or update all rows with one statement."""
        if values := [self.values(row) for row in rows]:
            await conn.execute(self.upsert, *zip(*values, strict=True))


def upsert_of(table: str, key: str, types: Mapping[str, str]) -> str:
    arrays = ", ".join(f"${i}::{sql_type}[]" for i, sql_type in enumerate(types.values(), 1))
    sets = ", ".join(f"{column} = excluded.{column}" for column in types if column != key)
    return (
        f"INSERT INTO {table} ({', '.join(types)}) SELECT * FROM unnest({arrays}) "  # noqa: S608
        f"ON CONFLICT ({key}) DO UPDATE SET {sets}"
    )


def column_types(row: type[Any]) -> dict[str, str]:
    """Return the SQL type of each field of a row class, by name; None in a union means NULL."""
    hints = get_type_hints(row, include_extras=True)
    return {name: _sql_type(hint) for name, hint in hints.items()}


def _sql_type(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        return str(get_args(hint)[1])
    present = [part for part in get_args(hint) if part is not type(None)] or [hint]
    return SQL_TYPES[present[0]]
