"""What is printed: one JSON document on stdout, or tables for people; never both."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Row = Mapping[str, object]


def console(*, stderr: bool = False) -> Console:
    """Rich's console, without highlighting of what users named."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=not sys.stdout.isatty())


def emit(value: object) -> None:
    """One JSON document and a line end; nothing else may go to stdout."""
    sys.stdout.write(json.dumps(value, default=str) + "\n")
    sys.stdout.flush()


def say(line: str) -> None:
    """A line for people, which may not be what stdout is for."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def lines(texts: Iterable[str]) -> None:
    """Plain lines on stdout, each at once."""
    for text in texts:
        sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "none") -> None:
    """A table without frames; `empty` is said where there are no rows."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(text_of(cell)) for cell in row))
    if shown.row_count:
        console().print(shown)
    else:
        lines([empty])


def text_of(cell: object) -> str:
    match cell:
        case None | "":
            return "-"
        case bool():
            return "yes" if cell else "no"
        case float():
            return f"{cell:g}"
        case list() | tuple():
            return ", ".join(map(text_of, cell)) or "-"
        case _:
            return "".join(char if char.isprintable() else "?" for char in str(cell))
