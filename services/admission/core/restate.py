"""What access says, restated as admission's own facts where it is news."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.admission.core.state import Pool
from shared.contracts.access import PoolConfigured, TenantRegistered, TenantRetired
from shared.contracts.bookkeeping import TenantNoted
from shared.ledger.decider import Decision, Input


def restate(state: Pool, inputs: Sequence[Input]) -> Iterator[Decision]:
    """The last word of a batch on each subject counts: history told again changes nothing."""
    pool: tuple[Input, PoolConfigured] | None = None
    tenants: dict[str, tuple[Input, TenantNoted]] = {}
    for item in inputs:
        match item.message:
            case PoolConfigured() as said if said.partition == state.partition:
                pool = item, said
            case TenantRegistered(tenant=name, weight=weight):
                tenants[name] = item, TenantNoted(tenant=name, weight=weight)
            case TenantRetired(tenant=name):
                known = tenants[name][1] if name in tenants else state.tenants.get(name)
                weight = known.weight if known else 1.0
                tenants[name] = item, TenantNoted(tenant=name, active=False, weight=weight)
    if pool is not None and pool[1] != state.pool:
        yield pool[0].leads_to(pool[1])
    for item, noted in tenants.values():
        if noted != state.tenants.get(noted.tenant):
            yield item.leads_to(noted)
