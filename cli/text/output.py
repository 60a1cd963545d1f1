"""Output: one JSON document on stdout, or tables and lines of text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shared.process.progress import ReportLine

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

UNBROKEN = 10_000


def console(*, stderr: bool = False) -> Console:
    """Return a Rich console without highlighting."""
    from rich.console import Console

    out = sys.stderr if stderr else sys.stdout
    # Files and pipes have no width at which to wrap a line.
    return Console(stderr=stderr, highlight=False, width=None if out.isatty() else UNBROKEN)


def emit(value: object) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(json.dumps(value, default=str) + "\n")
    sys.stdout.flush()


def report_line(line: str) -> None:
    """Print a progress line on stderr."""
    sys.stderr.write(printable(line) + "\n")
    sys.stderr.flush()


def lines(texts: Iterable[str]) -> None:
    """Print lines on stdout, without control characters, which a terminal would obey."""
    for text in texts:
        sys.stdout.write(printable(text) + "\n")
    sys.stdout.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "none") -> None:
    """Print a table without frames, or `empty` if there are no rows."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(columns):
        shown.add_column(name, overflow="fold", no_wrap=index == 0)
    for row in rows:
        shown.add_row(*(Text(text_of(cell)) for cell in row))
    if not shown.row_count:
        lines([empty])
    elif sys.stdout.isatty():
        console().print(shown)
    else:
        lines(_unpadded(shown))


def _unpadded(shown: Table) -> list[str]:
    """Render without trailing blanks, for files and pipes."""
    plain = console()
    with plain.capture() as captured:
        plain.print(shown)
    return [line.rstrip() for line in captured.get().splitlines()]


@contextmanager
def working(task: str, silent: bool) -> Iterator[ReportLine]:
    """Show a spinner with the latest line on a terminal; nothing elsewhere."""
    shown = console(stderr=True)
    if silent or not shown.is_terminal:
        yield lambda _: None
        return
    with shown.status(task) as line:
        yield lambda text: line.update(f"{task}: {text}")


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
            return printable(str(cell), kept="")


def printable(text: str, kept: str = "\n\t") -> str:
    """Return the text with `?` for each character that cannot be printed, except those kept."""
    return "".join(char if char.isprintable() or char in kept else "?" for char in text)
