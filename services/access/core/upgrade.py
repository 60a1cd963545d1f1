"""Pools of an earlier release keep its event types until the upgrade is finished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shared.contracts import releases
from shared.contracts.access import RegisterTenant
from shared.contracts.bounds import TenantBounds, bounds_in_force
from shared.contracts.pools import RELEASE, ConfigurePool, PoolConfigured, default_of
from shared.contracts.registry import AccessView
from shared.contracts.releases import finished, held_settings


def release_of(view: AccessView, pool: str) -> int:
    """Return the release of a pool; a new one has that of the installation."""
    existing = view.pools.get(pool)
    return existing.release if existing else view.release


def event_of(view: AccessView, lane: int, command: ConfigurePool) -> PoolConfigured:
    """Return the event of a configuration, with what is held until the upgrade is finished."""
    release = release_of(view, command.pool)
    settings = command.model_dump(exclude={"if_version"})
    held = held_settings(view.pools.get(command.pool), release)
    return PoolConfigured(partition=lane, release=release, **{**settings, **held})


def early_setting(view: AccessView, command: ConfigurePool) -> str | None:
    """Return why a setting cannot be used yet; its default in a request counts as not named."""
    held = held_settings(view.pools.get(command.pool), release_of(view, command.pool))
    requested = {name: getattr(command, name) for name in held}
    named = {name: value for name, value in requested.items() if value != default_of(name)}
    return releases.early_setting(held, named) or late_setting(view, command.model_dump())


def late_setting(view: AccessView, named: Mapping[str, object]) -> str | None:
    """Return why a setting cannot be used until the upgrade of the installation is finished."""
    return None if view.is_finished else releases.late_setting(named)


def finish_upgrade(view: AccessView) -> Iterator[PoolConfigured]:
    """Yield each pool of an earlier release as it is from now on."""
    for pool in view.pools.values():
        if pool.release < RELEASE:
            yield finished(pool)


def registered_bounds(view: AccessView, command: RegisterTenant) -> TenantBounds | None:
    """Return the bounds of a registration.

    A default in a request counts as not named, and what is not named stays as the tenant has it;
    until the upgrade is finished a new one is not bound, as before.
    """
    names = TenantBounds.model_fields
    named = {name: getattr(command, name) for name in names}
    existing = view.tenants.get(command.tenant)
    if existing is None and view.is_finished:
        return TenantBounds(**named)
    before = existing.bounds if existing else None
    changes = {name: value for name, value in named.items() if value != names[name].default}
    return bounds_in_force(before).model_copy(update=changes) if changes else before
