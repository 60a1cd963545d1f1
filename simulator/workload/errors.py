"""Errors of a trace, with the file, column and row."""

from __future__ import annotations

from pathlib import Path


class TraceError(Exception):
    """Raised if a trace cannot be read; `row` counts rows of data from 0 in file order."""

    def __init__(
        self, file: Path, rule: str, *, column: str | None = None, row: int | None = None
    ) -> None:
        self.file, self.column, self.row, self.rule = file, column, row, rule
        where = [str(file)]
        where += [f"column {column}"] if column is not None else []
        where += [f"row {row}"] if row is not None else []
        super().__init__(f"{', '.join(where)}: {rule}")


def first_line(error: Exception) -> str:
    """Return the first line of a library's message."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
