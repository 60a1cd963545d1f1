"""Meters of the use of a budget: in a window, with a half-life, or in all."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

STEPS = 12
"""Steps of a window, in which the service forgets use."""


class BudgetMeter(Protocol):
    """Units that were used, as far as they are remembered; times in ms do not decrease."""

    def add(self, units: float, at: int) -> None: ...

    def total(self, at: int) -> float: ...


@dataclass(slots=True)
class WindowMeter:
    """The units of the last `period_ms`: never more than the service remembers.

    The service forgets charges and refunds in steps of a twelfth, one step late.
    """

    period_ms: float
    charges: deque[tuple[int, float]] = field(default_factory=deque)
    refunds: deque[tuple[int, float]] = field(default_factory=deque)
    units: float = 0.0

    def add(self, units: float, at: int) -> None:
        (self.charges if units > 0 else self.refunds).append((at, units))
        self.units += units

    def total(self, at: int) -> float:
        self._forget(self.charges, at - self.period_ms)
        self._forget(self.refunds, at - self.period_ms * (1 + 1 / STEPS) - 1)
        return self.units

    def _forget(self, added: deque[tuple[int, float]], until: float) -> None:
        while added and added[0][0] <= until:
            self.units -= added.popleft()[1]


@dataclass(slots=True)
class HalfLifeMeter:
    """Half of the units are left after each half-life; all of them without one."""

    half_life_ms: float | None
    units: float = 0.0
    at: int = 0

    def add(self, units: float, at: int) -> None:
        self.units, self.at = self.total(at) + units, max(at, self.at)

    def total(self, at: int) -> float:
        if self.half_life_ms is None:
            return self.units
        return self.units * math.exp2(-max(at - self.at, 0) / self.half_life_ms)
