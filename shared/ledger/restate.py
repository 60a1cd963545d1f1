"""Restates events of the access ledger as a decider's own: its ledger alone gives its state.

Of a batch the last event on each subject counts: repeated history changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shared.contracts.access import EndpointConfigured, TenantRegistered, TenantRetired
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.pools import PoolConfigured
from shared.ledger.decider import Decision, Input

Settings = PoolConfigured | EndpointConfigured


def restate_settings(
    inputs: Sequence[Input], kind: type[Settings], partition: int, known: Settings | None
) -> Iterator[Decision]:
    """Restate the settings of the lane's pool or endpoint, where they are not the known ones."""
    latest: tuple[Input, Settings] | None = None
    for item in inputs:
        if isinstance(item.message, kind) and item.message.partition == partition:
            latest = item, item.message
    if latest is not None and latest[1] != known:
        yield latest[0].decision(latest[1])


def restate_tenants(
    inputs: Sequence[Input], known: Callable[[str], TenantNoted | None]
) -> Iterator[Decision]:
    """Restate the tenants that are not as `known`; only a known tenant is retired."""
    latest: dict[str, tuple[Input, TenantNoted]] = {}
    for item in inputs:
        match item.message:
            case TenantRegistered(tenant=tenant, weight=weight):
                latest[tenant] = item, TenantNoted(tenant=tenant, weight=weight)
            case TenantRetired(tenant=tenant):
                before = latest[tenant][1] if tenant in latest else known(tenant)
                if before is not None:
                    latest[tenant] = item, before.model_copy(update={"active": False})
    for item, noted in latest.values():
        if noted != known(noted.tenant):
            yield item.decision(noted)
