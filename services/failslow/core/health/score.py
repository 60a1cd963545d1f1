"""A health score in (0, 1]: verified faults count, half as much after each half-life.

Each fault adds to the burden of its part by how slow it made its gang; a false alarm
takes away what its fault has added. The score is 1 / (1 + burden).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

HALF_LIFE_S = 7 * 86_400.0
LARGEST_FAULT = 2.0
"""Bound on what one fault adds, whatever it slowed down."""
LARGEST_BURDEN = 99.0
"""So that no score is below 0.01."""
KEPT_FAULTS = 64
"""Faults of a part that a false alarm can still take back."""
WELL_LEAVES = 0.25
"""Part of a burden that a measurement without a deviation leaves: it is one moment, and a fault
that comes and goes may be absent then."""


@dataclass(slots=True)
class PartHealth:
    """The burden of a node or GPU at `at_s`; `added` is what each recent fault has added to it."""

    burden: float = 0.0
    at_s: float = 0.0
    faults: int = 0
    false_alarms: int = 0
    repairs: int = 0
    """Measurements in which the part was as fast as its like after a fault."""
    added: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Fault id -> (what it added, when)."""
    changed_by: str = ""
    """The newest fault, or the job of a validation, that changed it."""

    def score(self, now_s: float) -> float:
        """Return the score at a time; before the newest fact it is that of the fact."""
        return 1 / (1 + self._burden_at(now_s))

    def note_fault(self, fault_id: str, slowdown: float, now_s: float) -> None:
        """Add a verified fault once; `slowdown` is 0.25 if iterations take 1.25 times as long."""
        if fault_id in self.added:
            return
        weight = min(max(slowdown, 0.0), LARGEST_FAULT) if isfinite(slowdown) else LARGEST_FAULT
        self._advance(now_s)
        self.burden = min(self.burden + weight, LARGEST_BURDEN)
        self.faults += 1
        self.changed_by = fault_id
        self.added[fault_id] = (weight, self.at_s)
        while len(self.added) > KEPT_FAULTS:
            del self.added[next(iter(self.added))]

    def note_well(self, now_s: float, job_id: str = "") -> None:
        """Forget a part of the burden, as a job measured the part to be as fast as its like."""
        self._advance(now_s)
        self.changed_by = job_id
        self.burden *= WELL_LEAVES
        self.repairs += 1
        self.added = {
            fault_id: (weight * WELL_LEAVES, added_s)
            for fault_id, (weight, added_s) in self.added.items()
        }

    def take_back(self, fault_id: str, now_s: float) -> None:
        """Remove what a false alarm has added; one that is not remembered changes nothing."""
        self._advance(now_s)
        weight, added_s = self.added.pop(fault_id, (0.0, self.at_s))
        if weight:
            self.burden = max(0.0, self.burden - weight * _decay(self.at_s - added_s))
            self.false_alarms += 1
            self.changed_by = fault_id

    def _advance(self, now_s: float) -> None:
        self.burden = self._burden_at(now_s)
        self.at_s = max(self.at_s, now_s)

    def _burden_at(self, now_s: float) -> float:
        return self.burden * _decay(max(0.0, now_s - self.at_s))


def _decay(span_s: float) -> float:
    return float(0.5 ** (span_s / HALF_LIFE_S))
