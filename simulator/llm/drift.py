"""Users whose data drifts: how far each adapter is from what its user needs."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass, field

KEPT = 0.6
"""Part of a gap that an update leaves: later ones gain less."""
DRIFTING = 0.4
"""Part of the time in which the topic of a user drifts."""
SHIFT_S = 60.0
"""Mean time between changes of the drift of a user."""


@dataclass(slots=True)
class UserDrift:
    """The alignment gap of one user, 0 to 1: it grows while the topic drifts."""

    rates: list[tuple[float, float]]
    """Times of changes, and the growth per s from then on."""
    gap: float = 0.0
    at_s: float = 0.0
    updated_s: float = 0.0
    area: float = 0.0
    """Integral of the gap over time."""
    worst_stale_s: float = 0.0
    updates: int = 0
    _times: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._times = [at_s for at_s, _ in self.rates]

    def advance(self, now_s: float) -> float:
        """Let the gap grow until now, and return it."""
        while self.at_s < now_s:
            place = bisect_right(self._times, self.at_s)
            until_s = min(now_s, self._times[place] if place < len(self._times) else now_s)
            span_s = until_s - self.at_s
            grown = min(1.0, self.gap + self.rates[place - 1][1] * span_s)
            self.area += span_s * (self.gap + grown) / 2
            self.gap, self.at_s = grown, until_s
        return self.gap

    def stale_s(self, now_s: float) -> float:
        return now_s - self.updated_s

    def update(self, now_s: float) -> None:
        """A batch was trained, and the adapter replaced."""
        self.advance(now_s)
        self.worst_stale_s = max(self.worst_stale_s, self.stale_s(now_s))
        self.gap *= KEPT
        self.updated_s = now_s
        self.updates += 1

    def end(self, now_s: float) -> None:
        self.advance(now_s)
        self.worst_stale_s = max(self.worst_stale_s, self.stale_s(now_s))


def draw_drift(user: str, span_s: float, growth_per_s: float, seed: int) -> UserDrift:
    """Draw when the topic of a user drifts, and how fast."""
    draw = random.Random(f"{seed} {user}")
    rates, at_s = [], 0.0
    while at_s < span_s:
        drifts = draw.random() < DRIFTING
        rates.append((at_s, growth_per_s * draw.uniform(0.5, 1.5) if drifts else 0.0))
        at_s += draw.expovariate(1 / SHIFT_S)
    return UserDrift(rates)
