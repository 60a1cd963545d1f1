"""Named places at which a test can end the process as a power cut would.

There is one on each side of every commit: of an append, a transaction, a publication, a snapshot
and a chunk of output.
"""

from __future__ import annotations

import os
import sys
from typing import Literal, get_args

Failpoint = Literal[
    "before_send",
    "in_flight",
    "after_ack",
    "before_commit",
    "after_commit",
    "before_publish",
    "half_published",
    "after_publish",
    "after_forward",
    "before_report",
    "after_report",
    "half_snapshot",
    "after_snapshot",
    "before_chunk",
    "after_chunk",
    "after_position",
]

NAMES: tuple[str, ...] = get_args(Failpoint)
VARIABLE = "BERTH_FAILPOINT"
DIED = 137


class Failpoints:
    """`name:count` ends the process when that place is passed for the count-th time."""

    def __init__(self, armed: str = "") -> None:
        name, _, count = armed.partition(":")
        if name and name not in NAMES:
            raise ValueError(f"{VARIABLE} = {armed!r}: there is no place of that name")
        self._name = name
        self._left = int(count or 1)

    @classmethod
    def from_environment(cls) -> Failpoints:
        return cls(os.environ.get(VARIABLE, ""))

    def due(self, place: Failpoint) -> bool:
        """Count a pass; return whether the process has to end here."""
        if place != self._name:
            return False
        self._left -= 1
        return self._left == 0

    def hit(self, place: Failpoint) -> None:
        """Count a pass; end the process if it is due."""
        if self.due(place):
            self.die()

    def die(self) -> None:
        """Write one line, by which a test recognizes this exit, and end the process."""
        sys.stderr.write(f"failpoint {self._name}\n")
        sys.stderr.flush()
        os._exit(DIED)


FAILPOINTS = Failpoints.from_environment()
"""Failpoints of this process, for code that does not get its own."""
