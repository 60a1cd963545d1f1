"""Interactions in progress: which calls continue one, and how many came before."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.throttle.core.disciplines.bounded_table import BoundedTable

IDLE_MS = 600_000
"""Time after its last call in which an interaction is in progress."""

TENANT_INTERACTIONS = 1_000
"""Interactions of one tenant that are known, so that none makes those of others forgotten."""


@dataclass(slots=True)
class Interaction:
    """The calls of one interaction that were queued, and the time of the last."""

    calls: int = 0
    called_at: int = 0


def _empty() -> BoundedTable[str, Interaction]:
    return BoundedTable(TENANT_INTERACTIONS)


@dataclass(slots=True)
class Interactions:
    """The interactions that were called last, by tenant and id.

    An id that is not among them begins an interaction, so a client gains nothing by inventing
    one: its first call can be throttled as any first call.
    """

    tenants: BoundedTable[str, BoundedTable[str, Interaction]] = field(default_factory=BoundedTable)

    def stage(self, tenant: str, interaction: str, now: int) -> int:
        """Return how many calls of the interaction came before one that arrives now."""
        own = self.tenants.get(tenant)
        known = own.get(interaction) if own is not None else None
        if known is None or now - known.called_at > IDLE_MS:
            return 0
        return known.calls

    def add_call(self, tenant: str, interaction: str, stage: int, at: int) -> None:
        """Count a call that was queued."""
        if interaction:
            own = self.tenants.touch(tenant, _empty)
            known = own.touch(interaction, Interaction, lambda old: at - old.called_at > IDLE_MS)
            known.calls, known.called_at = stage + 1, at
