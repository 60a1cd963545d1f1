"""The strictness of a pool with each kind of suspicion, by the verdicts of operators. Pure.

Each false alarm makes the kind one step stricter, and each confirmed fault one step less, within
bounds. A step demands a quarter more of size and score; thresholds are never below the configured
ones. A fault is confirmed where an operator approves a plan against it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from services.failslow.core.detection.limits import DetectionLimits
from services.failslow.core.measures.peers import Thresholds
from shared.contracts.faults import SuspicionKind, ThresholdsAdjusted

STEP = 0.25
MOST_STEPS = 4
KINDS: tuple[SuspicionKind, ...] = ("worker", "job")
USUAL = DetectionLimits()


@dataclass(slots=True)
class Verdicts:
    """The verdicts of operators on suspicions of one kind."""

    steps: int = 0
    false_alarms: int = 0
    confirmed: int = 0

    @property
    def strictness(self) -> float:
        """Multiple of size and score, from 1 to 2."""
        return 1 + STEP * self.steps


@dataclass(slots=True)
class Strictness:
    """Verdicts by kind of suspicion."""

    kinds: dict[SuspicionKind, Verdicts] = field(
        default_factory=lambda: {kind: Verdicts() for kind in KINDS}
    )

    def of(self, kind: SuspicionKind) -> Verdicts:
        return self.kinds[kind]

    def note(self, event: ThresholdsAdjusted) -> None:
        self.kinds[event.kind] = Verdicts(event.steps, event.false_alarms, event.confirmed)

    def adjusted(self, pool: str, kind: SuspicionKind, *, false_alarm: bool) -> ThresholdsAdjusted:
        """Return the thresholds of a kind after one more verdict."""
        verdicts = self.of(kind)
        steps = verdicts.steps + (1 if false_alarm else -1)
        after = Verdicts(
            min(max(steps, 0), MOST_STEPS),
            verdicts.false_alarms + false_alarm,
            verdicts.confirmed + (not false_alarm),
        )
        return ThresholdsAdjusted(
            pool=pool,
            kind=kind,
            steps=after.steps,
            strictness=after.strictness,
            false_alarms=after.false_alarms,
            confirmed=after.confirmed,
        )

    def thresholds(self, limits: Thresholds) -> Thresholds:
        """Return the limits for slow workers."""
        factor = self.of("worker").strictness
        if factor == 1:
            return limits
        return replace(
            limits,
            slowdown=1 + factor * (limits.slowdown - 1),
            pair_slowdown=1 + factor * (limits.pair_slowdown - 1),
            score=factor * limits.score,
        )

    def accepts_job(self, slowdown: float, score: float) -> bool:
        """Return whether a verified change of a job's pace is large enough to be a fault."""
        factor = self.of("job").strictness
        if factor == 1:
            return True
        return slowdown - 1 >= factor * USUAL.size and score >= factor * USUAL.score
