"""The registration of a tenant, its number and bounds, and its retirement."""

from __future__ import annotations

from services.access.core.outcomes import Denial, Grant, Outcome, deny_tenant, deny_version
from services.access.core.upgrade import registered_bounds
from shared.contracts.access import RegisterTenant, RetireTenant, TenantRegistered, TenantRetired
from shared.contracts.bounds import TenantBounds
from shared.contracts.registry import AccessView


def register_tenant(view: AccessView, command: RegisterTenant) -> Outcome:
    if command.default_pool not in view.pools:
        detail = f"default_pool: {command.default_pool!r}: no such pool; configure it first"
        return Denial(command.tenant, "unknown_pool", detail)
    event = registration(view, command)
    if denial := deny_bound_pools(view, command.tenant, command.default_pool, event.bounds):
        return denial
    active = view.tenants.get(command.tenant) if view.is_active(command.tenant) else None
    if event == active:
        return Grant(command.tenant, None)
    denial = deny_version("tenant", command.tenant, active, command.if_version)
    return denial or Grant(command.tenant, event)


def registration(view: AccessView, command: RegisterTenant) -> TenantRegistered:
    """Return the tenant from now on: one that exists keeps what the command leaves at defaults."""
    named = command.model_dump(exclude={*TenantBounds.model_fields, "if_version"})
    bounds, existing = registered_bounds(view, command), view.tenants.get(command.tenant)
    if existing is None:
        return TenantRegistered(**named, number=view.number_of(command.tenant), bounds=bounds)
    defaults = {name: field.default for name, field in RegisterTenant.model_fields.items()}
    changes = {name: value for name, value in named.items() if value != defaults[name]}
    return existing.model_copy(update={**changes, "bounds": bounds})


def deny_bound_pools(
    view: AccessView, tenant: str, default_pool: str, bounds: TenantBounds | None
) -> Denial | None:
    """Return the denial of allowed pools that do not exist, or lack the tenant's default."""
    pools = bounds.pools if bounds else ()
    if unknown := next((name for name in pools if name not in view.pools), None):
        detail = f"pools: {unknown!r}: no such pool; configure it first"
        return Denial(tenant, "unknown_pool", detail)
    if pools and default_pool not in pools:
        rule = f"must be one of the tenant's pools: {', '.join(pools)}"
        return Denial(tenant, "pool_not_allowed", f"default_pool: {default_pool!r}: {rule}")
    return None


def retire_tenant(view: AccessView, command: RetireTenant) -> Outcome:
    if command.tenant not in view.tenants:
        return deny_tenant(command.tenant, command.tenant)
    active = view.is_active(command.tenant)
    return Grant(command.tenant, TenantRetired(tenant=command.tenant) if active else None)
