"""A circuit breaker per upstream: pure, its times come as arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BreakerPhase = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """The limits at which a breaker opens, and for how long; durations are in seconds."""

    failures: int = 3
    """Failures in a row after which it opens."""
    first_s: float = 1.0
    """The first cool-down; each that follows is twice as long."""
    longest_s: float = 60.0
    settled_s: float = 120.0
    """Time closed after which the next cool-down is the first one again."""


class Breaker:
    """Closed, it lets requests through; open, none; half open, one at a time as a trial.

    Requests that began before it opened change nothing when they end: one fault of the engine
    breaks all of them at once, and must not lengthen the cool-down for each.
    """

    def __init__(self, rules: BreakerRules | None = None) -> None:
        self._rules = rules or BreakerRules()
        self._failures = 0
        self._openings = 0
        self._open_until: float | None = None
        self._closed_at = float("-inf")
        self._resting_until = float("-inf")
        self._has_trial = False

    def phase(self, now: float) -> BreakerPhase:
        if self._open_until is None:
            return "closed"
        return "open" if now < self._open_until else "half_open"

    def allows(self, now: float) -> bool:
        """Return whether a request may be sent now."""
        if self.is_resting(now):
            return False
        phase = self.phase(now)
        return phase == "closed" or (phase == "half_open" and not self._has_trial)

    def is_resting(self, now: float) -> bool:
        """Return whether the engine requested a pause that is not over."""
        return now < self._resting_until

    def wait_s(self, now: float) -> float:
        """Return how long it will let nothing through; 0 if a request may be sent now."""
        return max(self._resting_until - now, (self._open_until or now) - now, 0.0)

    def start(self, now: float) -> bool:
        """Count a request that is sent now; returns whether it is the trial."""
        is_trial = self.phase(now) == "half_open"
        self._has_trial = self._has_trial or is_trial
        return is_trial

    def succeed(self, now: float, *, is_trial: bool) -> None:
        if is_trial:
            self._has_trial = False
            self._open_until = None
            self._closed_at = now
        if self._open_until is None:
            self._failures = 0

    def fail(self, now: float, *, is_trial: bool, at_once: bool = False) -> None:
        """Count a failure; `at_once` opens without waiting for others, as none can be served."""
        if is_trial:
            self._has_trial = False
        elif self._open_until is not None:
            return
        self._failures += 1
        if is_trial or at_once or self._failures >= self._rules.failures:
            self._open(now)

    def abandon(self, *, is_trial: bool) -> None:
        """Forget a request that ended without a verdict, as when its client left."""
        if is_trial:
            self._has_trial = False

    def rest(self, now: float, duration_s: float) -> None:
        """Send nothing for a while, as the engine requested; it has not failed."""
        until = now + min(duration_s, self._rules.longest_s)
        self._resting_until = max(self._resting_until, until)

    def _open(self, now: float) -> None:
        rules = self._rules
        if self._open_until is None and now - self._closed_at > rules.settled_s:
            self._openings = 0
        # The exponent is bounded, as an engine may be away for days.
        cool_down_s = min(rules.first_s * 2.0 ** min(self._openings, 30), rules.longest_s)
        self._openings += 1
        self._failures = 0
        self._open_until = now + cool_down_s
