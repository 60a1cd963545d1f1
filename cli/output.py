"""What is printed: one JSON document on stdout, or tables for people; never both."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

UNBROKEN = 10_000


def console(*, stderr: bool = False) -> Console:
    """Rich's console, without highlighting of what users named."""
    from rich.console import Console

    out = sys.stderr if stderr else sys.stdout
    # A file or a pipe has no right edge at which a line would have to be broken.
    return Console(stderr=stderr, highlight=False, width=None if out.isatty() else UNBROKEN)


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
    """As a file or a pipe wants it: no blanks at the ends of lines."""
    plain = console()
    with plain.capture() as captured:
        plain.print(shown)
    return [line.rstrip() for line in captured.get().splitlines()]


@contextmanager
def working(what: str, silent: bool) -> Iterator[Callable[[str], None]]:
    """A spinner with its last line on a terminal; nothing elsewhere."""
    shown = console(stderr=True)
    if silent or not shown.is_terminal:
        yield lambda _: None
        return
    with shown.status(what) as line:
        yield lambda text: line.update(f"{what}: {text}")


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
