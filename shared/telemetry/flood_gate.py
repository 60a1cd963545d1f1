"""A broker that is away is told of in a few lines, not in a hundred a second by each client."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

LIBRARIES = frozenset({"aiokafka", "faust", "kafka", "mode"})
"""Whose complaints are collapsed; what this project says itself is always written."""
EVERY_S = 10.0
MOST_KINDS = 500
"""Texts before their arguments are filled in; a library that made them up would be let through."""

Kind = tuple[str, int, str]


class FloodGate(logging.Filter):
    """Lets the first complaint of a kind through, and then one in `every_s` seconds: its field
    `repeated` is how many alike were left out before it.

    A kind is logger, level and text without its arguments. CRITICAL is never left out.
    """

    def __init__(
        self, every_s: float = EVERY_S, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._every_s = every_s
        self._now_s = now_s
        self._next_s: dict[Kind, float] = {}
        self._left_out: dict[Kind, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not _is_complaint(record):
            return True
        kind = (record.name, record.levelno, str(record.msg))
        now_s = self._now_s()
        if now_s < self._next_s.get(kind, now_s):
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        if kind in self._next_s or len(self._next_s) < MOST_KINDS:
            self._next_s[kind] = now_s + self._every_s
        if left_out := self._left_out.pop(kind, 0):
            record.repeated = left_out
        return True


def _is_complaint(record: logging.LogRecord) -> bool:
    is_known = record.name.partition(".")[0] in LIBRARIES
    return is_known and logging.WARNING <= record.levelno < logging.CRITICAL
