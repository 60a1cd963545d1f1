"""The limits of quarantine: a lane that would quarantine its whole input halts instead.

Beyond them the build is broken, not an input. Repeats of one tenant say little about the build, so
only a few of them count: whoever knows a defect parks inputs of their own and halts no lane.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from copy import deepcopy

from shared.ledger.decider import Input
from shared.ledger.errors import LaneHalted

MOST_IN_A_ROW = 5
MOST_OF_LATEST = 20
LATEST = 1_000
"""Inputs, the latest of which count."""
MOST_OF_TENANT = 4
"""Quarantined inputs of one tenant that count; below `MOST_IN_A_ROW`."""
DECIDED = None
UNKNOWN = ""
"""An input of no tenant, such as a report of a node: each one counts."""


def tenant_of(item: Input) -> str:
    """Return the tenant whose input it is: of the envelope, else of the event; empty: unknown."""
    return item.tenant or str(getattr(item.message, "tenant", UNKNOWN) or UNKNOWN)


class QuarantineLimits:
    """Counts the quarantined inputs of one lane, since the start of its process."""

    def __init__(self, lane: str) -> None:
        self._lane = lane
        self._in_a_row: Counter[str] = Counter()
        """Tenants of what was quarantined since the last decided input."""
        self._latest: deque[str | None] = deque(maxlen=LATEST)
        """Tenant of a quarantined input, or DECIDED."""
        self._records: deque[frozenset[str]] = deque(maxlen=LATEST)
        """Tenants of each quarantined record."""
        self._served: set[str] = set()
        """Tenants whose latest input was decided."""

    def note_decided(self, inputs: Sequence[Input]) -> None:
        """Count inputs that were decided."""
        if inputs:
            self._in_a_row.clear()
            self._latest.extend([DECIDED] * min(len(inputs), LATEST))
            self._served.update(map(tenant_of, inputs))
            self._served.discard(UNKNOWN)

    def note_quarantined(self, inputs: Sequence[Input]) -> None:
        """Count the inputs of one quarantined record."""
        tenant = self._sender(inputs)
        self._records.append(_tenants_of(inputs))
        if not (self._is_apart(tenant) and self._latest.count(tenant) >= MOST_OF_TENANT):
            self._latest.append(tenant)
        self._in_a_row[tenant] += 1
        self._served.discard(tenant)

    def after(self, decided: Sequence[Input], raising: Sequence[Input]) -> QuarantineLimits:
        """Return the counts behind a record of which some parts are quarantined.

        Each tenant of these counts once. Raises LaneHalted if they are too many.
        """
        limits = deepcopy(self)
        limits.note_decided(decided)
        for tenant in sorted(set(map(tenant_of, raising))):
            of_tenant = [item for item in raising if tenant_of(item) == tenant]
            limits.check(of_tenant)
            limits.note_quarantined(of_tenant)
        return limits

    def check(self, inputs: Sequence[Input]) -> None:
        """Raise LaneHalted if one more record, with these inputs, would be too many."""
        tenant = self._sender(inputs)
        row = self._in_a_row.copy()
        row[tenant] += 1
        if sum(_counted(row).values()) > MOST_IN_A_ROW:
            raise LaneHalted(
                f"{self._lane}: {row.total()} inputs in a row: at most {MOST_IN_A_ROW} are "
                f"quarantined, of one tenant {MOST_OF_TENANT} count"
            )
        latest = Counter(entry for entry in self._latest if entry is not DECIDED)
        latest[tenant] += 1
        counted = _counted(latest) if self._is_apart(tenant) else latest
        if sum(counted.values()) > MOST_OF_LATEST:
            raise LaneHalted(
                f"{self._lane}: {latest.total()} of the latest {LATEST} inputs: at most "
                f"{MOST_OF_LATEST} are quarantined"
            )

    def _is_apart(self, tenant: str) -> bool:
        """Return whether this build decides inputs of other tenants, as far as it is known."""
        return tenant != UNKNOWN and bool(self._served - {tenant})

    def _sender(self, inputs: Sequence[Input]) -> str:
        """Return the tenant of a record; of several the one that is in most quarantined records.

        Whoever adds inputs of others to each of their own is in all of them, the others in few.
        """
        records = Counter(name for record in self._records for name in record)
        tenants = sorted(_tenants_of(inputs))
        return max(
            tenants, key=lambda name: (records[name], name not in self._served), default=UNKNOWN
        )


def _tenants_of(inputs: Sequence[Input]) -> frozenset[str]:
    return frozenset(map(tenant_of, inputs)) - {UNKNOWN}


def _counted(quarantined: Counter[str]) -> Counter[str]:
    """Return what counts: all of unknown senders, and few of one tenant."""
    return Counter(
        {
            tenant: count if tenant == UNKNOWN else min(count, MOST_OF_TENANT)
            for tenant, count in quarantined.items()
        }
    )
