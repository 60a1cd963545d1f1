"""Restates events of the access ledger as the throttle's own, where they change something."""

from __future__ import annotations

from collections.abc import Iterator

from services.throttle.core.state import EndpointState
from shared.contracts.access import EndpointConfigured, TenantRegistered, TenantRetired
from shared.contracts.bookkeeping import TenantNoted
from shared.ledger.decider import Decision, Input


def restate_access(state: EndpointState, item: Input) -> Iterator[Decision]:
    match item.message:
        case EndpointConfigured(partition=partition) as endpoint:
            if partition == state.partition and endpoint != state.endpoint:
                yield item.decision(endpoint)
        case TenantRegistered(tenant=tenant, weight=weight):
            account = state.accounts.get(tenant)
            if account is None or not account.active or account.weight != weight:
                yield item.decision(TenantNoted(tenant=tenant, weight=weight))
        case TenantRetired(tenant=tenant):
            account = state.accounts.get(tenant)
            if account is not None and account.active:
                noted = TenantNoted(tenant=tenant, active=False, weight=account.weight)
                yield item.decision(noted)
