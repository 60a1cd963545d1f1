"""Meters that forget: what was used lately, by half-life or in a sliding window."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from services.throttle.core.disciplines.seam import DAY_MS

WINDOW_STEPS = 12
"""Parts of a window that are forgotten one by one, a part later than the window ends."""


class Meter(Protocol):
    """Units used, of which it forgets; times are wall ms, and one before the last counts as it."""

    def add(self, units: float, at: int) -> None:
        """Count units that were used."""

    def refund(self, units: float, at: int) -> None:
        """Take back units that were counted at this time: they are forgotten together."""

    def total(self, now: int) -> float:
        """Return the units that are not forgotten yet."""

    def wait_ms(self, units: float, now: int) -> int:
        """Return in how many ms it has forgotten so many more, a day at most."""


class Memory(Protocol):
    """The speed at which a meter forgets."""

    def meter(self) -> Meter:
        """Return an empty meter."""


@dataclass(slots=True)
class DecayingMeter:
    """After each half-life, half of what was used is left."""

    half_life_ms: float
    units: float = 0.0
    counted_at: int = 0

    def add(self, units: float, at: int) -> None:
        self.units = self.total(at) + units
        self.counted_at = max(self.counted_at, at)

    def refund(self, units: float, at: int) -> None:
        left = units * math.exp2(-max(self.counted_at - at, 0) / self.half_life_ms)
        self.units = max(self.units - left, 0.0)

    def total(self, now: int) -> float:
        return self.units * math.exp2(-max(now - self.counted_at, 0) / self.half_life_ms)

    def wait_ms(self, units: float, now: int) -> int:
        total = self.total(now)
        if total <= units:
            return DAY_MS
        return min(
            math.ceil(min(self.half_life_ms * math.log2(total / (total - units)), DAY_MS)), DAY_MS
        )


@dataclass(slots=True)
class MeterStep:
    """Units used in one part of a window."""

    began_at: int
    units: float


@dataclass(slots=True)
class WindowMeter:
    """Units used in the last `window_ms`, and in the part before it."""

    window_ms: int
    steps: deque[MeterStep] = field(default_factory=deque)

    @property
    def step_ms(self) -> int:
        return max(self.window_ms // WINDOW_STEPS, 1)

    def add(self, units: float, at: int) -> None:
        if not self.steps or at >= self.steps[-1].began_at + self.step_ms:
            while self.steps and self._forgotten_at(self.steps[0]) <= at:
                self.steps.popleft()
            self.steps.append(MeterStep(at, 0.0))
        self.steps[-1].units += units

    def refund(self, units: float, at: int) -> None:
        for step in reversed(self.steps):
            if step.began_at <= at:
                step.units = max(step.units - units, 0.0)
                return

    def total(self, now: int) -> float:
        return sum(step.units for step in self.steps if self._forgotten_at(step) > now)

    def wait_ms(self, units: float, now: int) -> int:
        for step in self.steps:
            if self._forgotten_at(step) > now:
                units -= step.units
                if units <= 0:
                    return min(self._forgotten_at(step) - now, DAY_MS)
        return DAY_MS

    def _forgotten_at(self, step: MeterStep) -> int:
        return step.began_at + self.step_ms + self.window_ms


@dataclass(frozen=True, slots=True)
class HalfLife:
    """Memory of a half-life in ms; infinite for a budget that is used up once."""

    ms: float = math.inf

    def __post_init__(self) -> None:
        if not self.ms > 0:
            raise ValueError(f"half_life_ms: {self.ms} is not above 0")

    def meter(self) -> Meter:
        return DecayingMeter(self.ms)


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Memory of a window in ms."""

    ms: int

    def __post_init__(self) -> None:
        if self.ms < 1:
            raise ValueError(f"window_ms: {self.ms} is below 1")

    def meter(self) -> Meter:
        return WindowMeter(self.ms)
