"""Meters of the use of a budget: in a window, with a half-life, or in all."""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol


class BudgetMeter(Protocol):
    """Units that were used, as far as they are remembered; times in ms do not decrease."""

    def add(self, units: float, at: int) -> None: ...

    def refund(self, units: float, at: int) -> None:
        """Take back units that were added at this time."""

    def total(self, at: int) -> float: ...


@dataclass(slots=True)
class WindowMeter:
    """The units of the last `period_ms`: never more than the service remembers.

    The service forgets charges in steps of a twelfth, one step late, and refunds with them.
    """

    period_ms: float
    charges: deque[tuple[int, float]] = field(default_factory=deque)
    refunds: list[tuple[int, float]] = field(default_factory=list)
    """A heap: those of the earliest charges are forgotten first."""
    units: float = 0.0

    def add(self, units: float, at: int) -> None:
        self.charges.append((at, units))
        self.units += units

    def refund(self, units: float, at: int) -> None:
        heapq.heappush(self.refunds, (at, units))
        self.units -= units

    def total(self, at: int) -> float:
        until = at - self.period_ms
        while self.charges and self.charges[0][0] <= until:
            self.units -= self.charges.popleft()[1]
        while self.refunds and self.refunds[0][0] <= until:
            self.units += heapq.heappop(self.refunds)[1]
        return self.units


@dataclass(slots=True)
class HalfLifeMeter:
    """Half of the units are left after each half-life; all of them without one."""

    half_life_ms: float | None
    units: float = 0.0
    at: int = 0

    def add(self, units: float, at: int) -> None:
        self.units, self.at = self.total(at) + units, max(at, self.at)

    def refund(self, units: float, at: int) -> None:
        decay = 1.0 if self.half_life_ms is None else math.exp2((at - self.at) / self.half_life_ms)
        self.units -= units * decay

    def total(self, at: int) -> float:
        if self.half_life_ms is None:
            return self.units
        return self.units * math.exp2(-max(at - self.at, 0) / self.half_life_ms)
