"""Outcomes of commands that change the settings they name and keep the others."""

from __future__ import annotations

from services.access.core.endpoints import deny_endpoint
from services.access.core.outcomes import Denial, Grant, Outcome, deny_tenant, deny_version
from services.access.core.pools import deny_pool_members
from services.access.core.tenants import deny_bound_pools
from services.access.core.upgrade import late_setting
from shared.contracts.bounds import TenantBounds, bounds_in_force
from shared.contracts.registry import AccessView
from shared.contracts.updates import UpdateEndpoint, UpdatePool, UpdateTenant

AccessUpdate = UpdatePool | UpdateEndpoint | UpdateTenant


def decide_update(view: AccessView, command: AccessUpdate) -> Outcome:
    match command:
        case UpdatePool():
            return update_pool(view, command)
        case UpdateEndpoint():
            return update_endpoint(view, command)
        case UpdateTenant():
            return update_tenant(view, command)


def update_pool(view: AccessView, command: UpdatePool) -> Outcome:
    existing = view.pools.get(command.pool)
    if existing is None:
        detail = f"pool: {command.pool!r}: no such pool; `berth pools add` creates one"
        return Denial(command.pool, "unknown_pool", detail)
    changes = command.changes_of(existing)
    members = changes.get("backends", ()), changes.get("tenants", ())
    if denial := deny_pool_members(view, command.pool, *members):
        return denial
    if early := command.early_setting(existing) or late_setting(view, changes):
        return Denial(command.pool, "upgrade_not_finished", early)
    event = existing.model_copy(update=changes)
    if event == existing:
        return Grant(command.pool, None)
    event = event.model_copy(update={"reason": command.reason})
    denial = deny_version("pool", command.pool, existing, command.if_version)
    return denial or Grant(command.pool, event)


def update_endpoint(view: AccessView, command: UpdateEndpoint) -> Outcome:
    existing = view.endpoints.get(command.endpoint)
    if existing is None:
        detail = f"endpoint: {command.endpoint!r}: no such endpoint; `berth endpoints create`"
        return Denial(command.endpoint, "unknown_endpoint", detail)
    event = existing.model_copy(update=command.changes())
    if event == existing:
        return Grant(command.endpoint, None)
    denial = deny_endpoint(view, event, existing, command.if_version)
    return denial or Grant(command.endpoint, event)


def update_tenant(view: AccessView, command: UpdateTenant) -> Outcome:
    existing = view.tenants.get(command.tenant)
    if existing is None or not view.is_active(command.tenant):
        return deny_tenant(command.tenant, command.tenant)
    changes = command.changes()
    bounds = {name: changes.pop(name) for name in TenantBounds.model_fields if name in changes}
    if bounds:
        changes["bounds"] = bounds_in_force(existing.bounds).model_copy(update=bounds)
    event = existing.model_copy(update=changes)
    if event.default_pool not in view.pools:
        detail = f"default_pool: {event.default_pool!r}: no such pool; configure it first"
        return Denial(command.tenant, "unknown_pool", detail)
    if denial := deny_bound_pools(view, command.tenant, event.default_pool, event.bounds):
        return denial
    if event == existing:
        return Grant(command.tenant, None)
    denial = deny_version("tenant", command.tenant, existing, command.if_version)
    return denial or Grant(command.tenant, event)
