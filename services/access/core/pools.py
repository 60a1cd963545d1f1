"""The configuration of a pool: its lane, backends, tenants and settings."""

from __future__ import annotations

from collections.abc import Collection

from services.access.core.lanes import lowest_free
from services.access.core.outcomes import NO_TENANT, Denial, Grant, Outcome, deny_lane, deny_version
from services.access.core.upgrade import early_setting, event_of
from shared.contracts.pools import ConfigurePool
from shared.contracts.registry import AccessView
from shared.contracts.releases import late_backend


def configure_pool(view: AccessView, lanes: int, command: ConfigurePool) -> Outcome:
    if denial := deny_pool_members(view, command.pool, command.backends, command.tenants):
        return denial
    existing = view.pools.get(command.pool)
    lane = lane_of(view, command.pool, lanes)
    if lane is None:
        return deny_lane("pool", command.pool, lanes, view.former_lanes)
    if early := early_setting(view, command):
        return Denial(command.pool, "upgrade_not_finished", early)
    event = event_of(view, lane, command)
    if existing is not None and event == existing.model_copy(update={"reason": event.reason}):
        return Grant(command.pool, None)
    denial = deny_version("pool", command.pool, existing, command.if_version)
    return denial or Grant(command.pool, event)


def lane_of(view: AccessView, pool: str, lanes: int) -> int | None:
    """Return the lane of a pool: that which it has or had, else the lowest that is free."""
    own = {name: configured.partition for name, configured in view.pools.items()}
    taken = view.former_lanes | own
    return taken[pool] if pool in taken else lowest_free(taken.values(), lanes)


def deny_pool_members(
    view: AccessView, pool: str, backends: Collection[str], tenants: Collection[str]
) -> Denial | None:
    """Return the denial of a backend that is retired or too new, or of an unknown tenant."""
    if "process" in backends:
        detail = "backends: 'process': is retired; 'agent' and 'virtual' are allowed"
        return Denial(pool, "backend_retired", detail)
    if not view.is_finished and (late := late_backend(backends)):
        return Denial(pool, "upgrade_not_finished", late)
    if unknown := next((name for name in tenants if name not in view.tenants), None):
        return Denial(pool, "unknown_tenant", f"tenants: {unknown!r}: {NO_TENANT}")
    return None
