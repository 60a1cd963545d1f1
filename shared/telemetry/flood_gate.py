"""Collapses repeated log records: a lost broker gives a few lines, not hundreds per second."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

LIBRARIES = frozenset({"aiokafka", "faust", "kafka", "mode"})
"""Packages whose warnings and errors are collapsed; records of Berth itself never are."""
EVERY_S = 10.0
MAX_KINDS = 500
"""Limit of distinct unformatted texts; beyond it records of new kinds pass unfiltered."""

Kind = tuple[str, int, str]


class FloodGate(logging.Filter):
    """Passes the first record of a kind and then one per `every_s` seconds.

    Its field `repeated` counts the records dropped before it. A kind is logger, level and text
    without arguments. CRITICAL records are never dropped.
    """

    def __init__(
        self, every_s: float = EVERY_S, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._every_s = every_s
        self._now_s = now_s
        self._next_s: dict[Kind, float] = {}
        self._dropped: dict[Kind, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not _is_collapsible(record):
            return True
        kind = (record.name, record.levelno, str(record.msg))
        now_s = self._now_s()
        if now_s < self._next_s.get(kind, now_s):
            self._dropped[kind] = self._dropped.get(kind, 0) + 1
            return False
        if kind in self._next_s or len(self._next_s) < MAX_KINDS:
            self._next_s[kind] = now_s + self._every_s
        if dropped := self._dropped.pop(kind, 0):
            record.repeated = dropped
        return True


def _is_collapsible(record: logging.LogRecord) -> bool:
    is_library = record.name.partition(".")[0] in LIBRARIES
    return is_library and logging.WARNING <= record.levelno < logging.CRITICAL
