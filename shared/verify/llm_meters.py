"""Meters of the use of a budget: in a window, with a half-life, or in all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

MOST_STEPS = 4096
"""Parts of a window that are forgotten one by one."""


class BudgetMeter(Protocol):
    """Units that were used, as far as they are remembered; times in ms do not decrease."""

    def add(self, units: float, at: int) -> None: ...

    def refund(self, units: float, at: int) -> None:
        """Take back units that were added at this time."""

    def total(self, at: int) -> float: ...


@dataclass(slots=True)
class WindowMeter:
    """The units of the last `period_ms`: never more than the service remembers.

    The service forgets charges in steps of a twelfth, one step late, and refunds with them. Here
    they are kept in at most `MOST_STEPS` steps, each as if all of it were of the step's begin.
    """

    period_ms: float
    steps: dict[int, float] = field(default_factory=dict)
    """Units by the begin of their step, in the order of time."""
    units: float = 0.0

    def add(self, units: float, at: int) -> None:
        step = self._step(at)
        self.steps[step] = self.steps.get(step, 0.0) + units
        self.units += units

    def refund(self, units: float, at: int) -> None:
        step = self._step(at)
        if step in self.steps:
            self.steps[step] -= units
            self.units -= units

    def total(self, at: int) -> float:
        until = at - self.period_ms
        while self.steps and (oldest := next(iter(self.steps))) <= until:
            self.units -= self.steps.pop(oldest)
        return self.units

    def _step(self, at: int) -> int:
        return at - at % max(int(self.period_ms / MOST_STEPS), 1)


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
