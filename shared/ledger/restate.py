"""Restates events of the access ledger as a decider's own: its ledger alone gives its state.

Of a batch the last event on each subject counts: repeated history changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.bookkeeping import TenantNoted, UserNoted
from shared.contracts.bounds import UserBounds
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted
from shared.contracts.pools import PoolConfigured, PoolDeleted
from shared.contracts.users import UserDeleted, UserRegistered
from shared.ledger.decider import Decision, Input

Settings = PoolConfigured | PoolDeleted | EndpointConfigured | EndpointDeleted


def restate_settings(
    inputs: Sequence[Input],
    kind: type[Settings] | tuple[type[Settings], ...],
    partition: int,
    known: Settings | None,
) -> Iterator[Decision]:
    """Restate the settings of the lane's pool or endpoint, where they are not the known ones."""
    latest: tuple[Input, Settings] | None = None
    for item in inputs:
        if isinstance(item.message, kind) and item.message.partition == partition:
            latest = item, item.message
    if latest is not None and latest[1] != known:
        yield latest[0].decision(latest[1])


def gpu_weight(tenant: TenantRegistered) -> float:
    """Return the weight of a tenant in fair share."""
    return tenant.weight


def restate_tenants(
    inputs: Sequence[Input],
    known: Callable[[str], TenantNoted | None],
    weight_of: Callable[[TenantRegistered], float] = gpu_weight,
    *,
    with_bounds: bool = False,
) -> Iterator[Decision]:
    """Restate the tenants that are not as `known`; only a known tenant is retired."""
    latest: dict[str, tuple[Input, TenantNoted]] = {}
    for item in inputs:
        match item.message:
            case TenantRegistered(tenant=tenant) as registered:
                bounds = registered.bounds if with_bounds else None
                noted = TenantNoted(tenant=tenant, weight=weight_of(registered), bounds=bounds)
                latest[tenant] = item, noted
            case TenantRetired(tenant=tenant):
                before = latest[tenant][1] if tenant in latest else known(tenant)
                if before is not None:
                    latest[tenant] = item, before.model_copy(update={"active": False})
    for item, noted in latest.values():
        if noted != known(noted.tenant):
            yield item.decision(noted)


def restate_users(
    inputs: Sequence[Input], known: Mapping[str, Mapping[str, UserBounds]]
) -> Iterator[Decision]:
    """Restate the bounds of users that are not as `known` by tenant; a retired tenant has none."""
    latest: dict[tuple[str, str], tuple[Input, UserBounds | None]] = {}
    for item in inputs:
        match item.message:
            case UserRegistered() as registered:
                latest[registered.tenant, registered.user] = item, registered.bounds
            case UserDeleted(tenant=tenant, user=user):
                latest[tenant, user] = item, None
            case TenantRetired(tenant=tenant):
                in_batch = (user for of, user in latest if of == tenant)
                for user in (*known.get(tenant, {}), *in_batch):
                    latest[tenant, user] = item, None
    for (tenant, user), (item, bounds) in latest.items():
        if bounds != known.get(tenant, {}).get(user):
            yield item.decision(UserNoted(tenant=tenant, user=user, bounds=bounds))
