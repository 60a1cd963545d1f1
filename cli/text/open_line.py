"""A line of a terminal that is written anew until it has its end."""

from __future__ import annotations

import shutil
import sys

from cli.text.output import printable

CLEAR = "\r\x1b[K"


class OpenLine:
    """Shows the state of one line; `clear` comes before all other output."""

    def __init__(self) -> None:
        self._is_shown = False

    def show(self, text: str) -> None:
        """Show a state, as far as it fits: a line that wraps could not be written anew."""
        most = max(1, shutil.get_terminal_size().columns - 1)
        sys.stdout.write(CLEAR + printable(text)[:most])
        sys.stdout.flush()
        self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            sys.stdout.write(CLEAR)
            sys.stdout.flush()
            self._is_shown = False
