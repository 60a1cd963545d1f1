"""Durations of faults, learned from those that were observed.

The estimate is that of Kaplan and Meier, as the end of a fault is not seen once its node was left.
It is mixed with a prior under which a fault lasts as long again as it has lasted: where nothing
was observed, the choice that follows from it is the break-even rule.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

REMEMBERED = 200
PRIOR_WEIGHT = 2.0
PRIOR_MEDIAN_S = 300.0
REST_STEPS = 200


@dataclass(frozen=True, slots=True)
class ObservedFault:
    """`ended` is false where the job left the node while the fault lasted."""

    duration_s: float
    ended: bool = True


@dataclass(frozen=True, slots=True)
class Survival:
    """The probability that a fault lasts longer than a time."""

    count: int
    _ends_s: tuple[float, ...] = ()
    _after: tuple[float, ...] = ()

    @classmethod
    def of(cls, observed: Iterable[ObservedFault]) -> Survival:
        faults = sorted(observed, key=lambda fault: (fault.duration_s, not fault.ended))
        alive, share = len(faults), 1.0
        ends_s: list[float] = []
        after: list[float] = []
        for fault in faults:
            if fault.ended:
                share *= 1 - 1 / alive
                ends_s.append(fault.duration_s)
                after.append(share)
            alive -= 1
        return cls(len(faults), tuple(ends_s), tuple(after))

    def at(self, elapsed_s: float) -> float:
        index = bisect_right(self._ends_s, elapsed_s)
        observed = self._after[index - 1] if index else 1.0
        prior = PRIOR_MEDIAN_S / (PRIOR_MEDIAN_S + elapsed_s)
        return (self.count * observed + PRIOR_WEIGHT * prior) / (self.count + PRIOR_WEIGHT)

    def rest_s(self, elapsed_s: float, most_s: float) -> float:
        """Return how long a fault of this age lasts on average, counting `most_s` at most."""
        now, step_s = self.at(elapsed_s), most_s / REST_STEPS
        if now <= 0 or most_s <= 0:
            return 0.0
        middles = (elapsed_s + (step + 0.5) * step_s for step in range(REST_STEPS))
        return step_s * sum(self.at(middle_s) for middle_s in middles) / now


@dataclass(slots=True)
class DurationBook:
    """The newest observed faults, oldest first."""

    observed: list[ObservedFault] = field(default_factory=list)

    def note(self, duration_s: float, *, ended: bool) -> None:
        self.observed.append(ObservedFault(duration_s, ended))
        del self.observed[:-REMEMBERED]

    def survival(self) -> Survival:
        return Survival.of(self.observed)
