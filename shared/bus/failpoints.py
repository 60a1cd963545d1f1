"""Named places at which a test may have the process die, as a power cut would."""

from __future__ import annotations

import os
from typing import Literal

Place = Literal["before_send", "in_flight", "after_ack"]

VARIABLE = "BERTH_FAILPOINT"


class Failpoints:
    """`name:count` ends the process when that place is passed for the count-th time."""

    def __init__(self, armed: str = "") -> None:
        name, _, count = armed.partition(":")
        self._name = name
        self._left = int(count or 1)

    @classmethod
    def from_environment(cls) -> Failpoints:
        return cls(os.environ.get(VARIABLE, ""))

    def due(self, place: Place) -> bool:
        if place != self._name:
            return False
        self._left -= 1
        return self._left == 0

    def pass_by(self, place: Place) -> None:
        if self.due(place):
            self.die()

    @staticmethod
    def die() -> None:
        os._exit(137)
