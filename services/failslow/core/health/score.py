"""A health score in (0, 1]: verified faults count, half as much after each half-life.

Each fault adds to the burden of its part by how slow it made its gang; a false alarm
takes away what its fault has added. The score is 1 / (1 + burden). Jobs report their own times, so
the faults that those of one tenant report add no more together than one of the largest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple

HALF_LIFE_S = 7 * 86_400.0
LARGEST_FAULT = 2.0
"""Bound on what one fault adds, whatever it slowed down."""
LARGEST_BURDEN = 99.0
"""So that no score is below 0.01."""
KEPT_FAULTS = 64
"""Faults of a part that a false alarm can still take back."""
KEPT_TENANTS = 64
"""Tenants of which it is known what their faults have added; the least of it is forgotten first."""
LEAST_KEPT = 1e-6
MEASURED = ""
"""Stands in the place of the tenant for what an agent or an operator has measured: no bound."""
WELL_LEAVES = 0.25
"""Part of a burden that a measurement without a deviation leaves: it is one moment, and a fault
that comes and goes may be absent then."""


class AddedBurden(NamedTuple):
    """The burden that a fault has added, when, and the tenant whose job reported it."""

    weight: float
    at_s: float
    tenant: str = MEASURED

    def times(self, share: float) -> AddedBurden:
        return self._replace(weight=self.weight * share)


@dataclass(slots=True)
class PartHealth:
    """The burden of a node or GPU at `at_s`; `added` is what each recent fault has added to it."""

    burden: float = 0.0
    at_s: float = 0.0
    faults: int = 0
    false_alarms: int = 0
    repairs: int = 0
    """Measurements in which the part was as fast as its like after a fault."""
    added: dict[str, AddedBurden] = field(default_factory=dict)
    """By id of the fault."""
    of_tenants: dict[str, float] = field(default_factory=dict)
    """Parts of the burden that rest on the reports of one tenant."""
    changed_by: str = ""
    """The newest fault, or the job of a validation, that changed it."""

    def score(self, now_s: float) -> float:
        """Return the score at a time; before the newest fact it is that of the fact."""
        return 1 / (1 + self._burden_at(now_s))

    def note_fault(
        self, fault_id: str, slowdown: float, now_s: float, tenant: str = MEASURED
    ) -> None:
        """Add a verified fault once; `slowdown` is 0.25 if iterations take 1.25 times as long."""
        if fault_id in self.added:
            return
        weight = min(max(slowdown, 0.0), LARGEST_FAULT) if isfinite(slowdown) else LARGEST_FAULT
        self._advance(now_s)
        if tenant != MEASURED:
            weight = min(weight, LARGEST_FAULT - self.of_tenants.get(tenant, 0.0))
            self._add_of(tenant, weight)
        self.burden = min(self.burden + weight, LARGEST_BURDEN)
        self.faults += 1
        self.changed_by = fault_id
        self.added[fault_id] = AddedBurden(weight, self.at_s, tenant)
        while len(self.added) > KEPT_FAULTS:
            del self.added[next(iter(self.added))]

    def note_well(self, now_s: float, job_id: str = "") -> None:
        """Forget a part of the burden, as a job measured the part to be as fast as its like."""
        self._advance(now_s)
        self.changed_by = job_id
        self._leave(WELL_LEAVES)
        self.repairs += 1
        self.added = {fault_id: own.times(WELL_LEAVES) for fault_id, own in self.added.items()}

    def take_back(self, fault_id: str, now_s: float) -> None:
        """Remove what a false alarm has added; one that is not remembered changes nothing."""
        self._advance(now_s)
        own = self.added.pop(fault_id, None)
        if own is not None and own.weight:
            left = own.weight * _decay(self.at_s - own.at_s)
            self.burden = max(0.0, self.burden - left)
            self._add_of(own.tenant, -left)
            self.false_alarms += 1
            self.changed_by = fault_id

    def _advance(self, now_s: float) -> None:
        self._leave(_decay(max(0.0, now_s - self.at_s)))
        self.at_s = max(self.at_s, now_s)

    def _leave(self, share: float) -> None:
        self.burden *= share
        self.of_tenants = {tenant: own * share for tenant, own in self.of_tenants.items()}

    def _add_of(self, tenant: str, weight: float) -> None:
        """Change what the faults of a tenant have added; 0 is not kept."""
        own = self.of_tenants.pop(tenant, 0.0) + weight
        if own > LEAST_KEPT:
            self.of_tenants[tenant] = min(own, LARGEST_FAULT)
        if len(self.of_tenants) > KEPT_TENANTS:
            del self.of_tenants[min(self.of_tenants, key=self.of_tenants.__getitem__)]

    def _burden_at(self, now_s: float) -> float:
        return self.burden * _decay(max(0.0, now_s - self.at_s))


def _decay(span_s: float) -> float:
    return float(0.5 ** (span_s / HALF_LIFE_S))
