"""Restates events of the access ledger as admission's own, where they change something."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.admission.core.state import AdmissionState
from shared.contracts.access import PoolConfigured, TenantRegistered, TenantRetired
from shared.contracts.bookkeeping import TenantNoted
from shared.ledger.decider import Decision, Input


def restate_access(state: AdmissionState, inputs: Sequence[Input]) -> Iterator[Decision]:
    """The last event of a batch on each subject counts: repeated history changes nothing."""
    pool: tuple[Input, PoolConfigured] | None = None
    tenants: dict[str, tuple[Input, TenantNoted]] = {}
    for item in inputs:
        match item.message:
            case PoolConfigured() as configured if configured.partition == state.partition:
                pool = item, configured
            case TenantRegistered(tenant=tenant, weight=weight):
                tenants[tenant] = item, TenantNoted(tenant=tenant, weight=weight)
            case TenantRetired(tenant=tenant):
                noted = tenants[tenant][1] if tenant in tenants else state.tenants.get(tenant)
                weight = noted.weight if noted else 1.0
                tenants[tenant] = item, TenantNoted(tenant=tenant, active=False, weight=weight)
    if pool is not None and pool[1] != state.pool:
        yield pool[0].decision(pool[1])
    for item, noted in tenants.values():
        if noted != state.tenants.get(noted.tenant):
            yield item.decision(noted)
