"""The outcome of each command of access: the event that grants it, or a denial."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from services.access.core.lanes import lowest_free
from services.access.core.upgrade import early_setting, event_of, finish_upgrade, registered_bounds
from shared.contracts.access import (
    AttemptsRefused,
    CreateKey,
    KeyCreated,
    KeyRevoked,
    NoteAttempts,
    RegisterTenant,
    RetireTenant,
    RevokeKey,
    TenantRegistered,
    TenantRetired,
)
from shared.contracts.base import Command, Event
from shared.contracts.bounds import TenantBounds
from shared.contracts.endpoints import (
    ConfigureEndpoint,
    DeleteEndpoint,
    EndpointConfigured,
    EndpointDeleted,
)
from shared.contracts.pools import ConfigurePool
from shared.contracts.registry import AccessView
from shared.contracts.releases import FinishUpgrade, late_backend
from shared.contracts.settings_version import Versioned, version_of

NO_TENANT = "no such tenant; `berth tenants add` registers one"


class Grant(NamedTuple):
    """The event that a command leads to; None if it changes nothing. `others` follow it."""

    of: str
    event: Event | None
    others: tuple[Event, ...] = ()


class Denial(NamedTuple):
    """The refusal of a command: `reason` for machines, `detail` with field, value and rule."""

    of: str
    reason: str
    detail: str


Outcome = Grant | Denial


def decide_outcome(view: AccessView, lanes: int, command: Command) -> Outcome:
    match command:
        case ConfigurePool():
            return configure_pool(view, lanes, command)
        case FinishUpgrade():
            events = tuple(finish_upgrade(view))
            return Grant("upgrade", events[0] if events else None, events[1:])
        case ConfigureEndpoint():
            return configure_endpoint(view, lanes, command)
        case DeleteEndpoint():
            return delete_endpoint(view, command)
        case RegisterTenant():
            return register_tenant(view, command)
        case RetireTenant():
            return retire_tenant(view, command)
        case CreateKey():
            return create_key(view, command)
        case RevokeKey():
            return revoke_key(view, command)
        case NoteAttempts():
            event = AttemptsRefused(gateway=command.gateway, attempts=command.attempts)
            return Grant(command.gateway, event)
        case _:
            return Denial("", "unknown_command", f"command: {command.TYPE}: not supported")


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


def deny_version(
    kind: str, name: str, existing: Versioned | None, if_version: str | None
) -> Denial | None:
    """Return the denial of a change that is based on another version of the settings."""
    version = version_of(existing)
    if if_version in (None, version):
        return None
    rule = f"{kind} {name} has version {version}; read it again and repeat the change"
    return Denial(name, "version_conflict", f"if_version: {if_version!r}: {rule}")


def configure_endpoint(view: AccessView, lanes: int, command: ConfigureEndpoint) -> Outcome:
    existing = view.endpoints.get(command.endpoint)
    taken = (endpoint.partition for endpoint in view.endpoints.values())
    lane = existing.partition if existing else lowest_free(taken, lanes)
    if lane is None:
        return deny_lane("endpoint", command.endpoint, lanes)
    event = EndpointConfigured(partition=lane, **command.model_dump(exclude={"if_version"}))
    if event == existing:
        return Grant(command.endpoint, None)
    denial = deny_endpoint(view, event, existing, command.if_version)
    return denial or Grant(command.endpoint, event)


def deny_endpoint(
    view: AccessView,
    event: EndpointConfigured,
    existing: EndpointConfigured | None,
    if_version: str | None,
) -> Denial | None:
    """Return the denial of settings of an endpoint, or of a change that is based on others."""
    return (
        deny_early(view, event)
        or deny_names(view, event)
        or deny_version("endpoint", event.endpoint, existing, if_version)
    )


def deny_early(view: AccessView, event: EndpointConfigured) -> Denial | None:
    """Return the denial of a setting that the throttle of an earlier release would pass over."""
    if event.retraining is None or view.is_finished:
        return None
    detail = "retraining: is possible after `berth upgrade finish`: earlier releases lack it"
    return Denial(event.endpoint, "upgrade_not_finished", detail)


def deny_names(view: AccessView, event: EndpointConfigured) -> Denial | None:
    """Return the denial of a name that is given twice or taken, or that does not exist."""
    if denial := deny_repeats(event):
        return denial
    for model in event.models:
        owner = view.endpoint_of_model.get(model, event.endpoint)
        if owner != event.endpoint:
            detail = f"model: {model!r}: is a name of endpoint {owner}; use another name"
            return Denial(event.endpoint, "model_taken", detail)
    for name in event.fallbacks:
        if name not in view.endpoints:
            detail = f"fallbacks: {name!r}: no such endpoint; create it first"
            return Denial(event.endpoint, "unknown_endpoint", detail)
    for name in event.tenants:
        if name not in view.tenants:
            detail = f"tenants: {name!r}: no such tenant; register it first"
            return Denial(event.endpoint, "unknown_tenant", detail)
    return None


def deny_repeats(event: EndpointConfigured) -> Denial | None:
    upstreams = [upstream.name for upstream in event.upstreams]
    for field, names in (("upstreams", upstreams), ("aliases, adapters", [*event.models])):
        if twice := next((name for name in names if names.count(name) > 1), None):
            detail = f"{field}: {twice!r}: is given twice; each name once is allowed"
            return Denial(event.endpoint, "name_repeated", detail)
    if event.endpoint in event.fallbacks:
        detail = f"fallbacks: {event.endpoint!r}: is the endpoint itself; name another one"
        return Denial(event.endpoint, "fallback_to_itself", detail)
    return None


def delete_endpoint(view: AccessView, command: DeleteEndpoint) -> Outcome:
    existing = view.endpoints.get(command.endpoint)
    if existing is None:
        detail = f"endpoint: {command.endpoint!r}: no such endpoint"
        return Denial(command.endpoint, "unknown_endpoint", detail)
    user = next((n for n, e in view.endpoints.items() if command.endpoint in e.fallbacks), None)
    if user is not None:
        detail = f"endpoint: {command.endpoint!r}: is a fallback of {user}; change that first"
        return Denial(command.endpoint, "endpoint_in_use", detail)
    event = EndpointDeleted(endpoint=command.endpoint, partition=existing.partition)
    return Grant(command.endpoint, event)


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


def create_key(view: AccessView, command: CreateKey) -> Outcome:
    """Create a key; an id that was used before gets no other secret or role."""
    key_id = command.key_id
    event = KeyCreated(**command.model_dump())
    if key_id in view.revoked:
        detail = f"key_id: {key_id!r}: key was revoked; use another id"
        return Denial(key_id, "key_revoked", detail)
    existing = view.keys.get(key_id)
    if existing is not None and existing != event:
        return Denial(key_id, "key_exists", f"key_id: {key_id!r}: key exists; use another id")
    if unknown := next((name for name in command.pools if name not in view.pools), None):
        return Denial(key_id, "unknown_pool", f"pools: {unknown!r}: no such pool")
    return check_key_tenant(view, command) or Grant(key_id, None if existing else event)


def check_key_tenant(view: AccessView, command: CreateKey) -> Denial | None:
    """Operators and admins serve all tenants, submitters exactly one, viewers either."""
    if command.tenant is None:
        if command.role == "submitter":
            detail = "tenant: absent: a key of role submitter has one"
            return Denial(command.key_id, "tenant_required", detail)
        return None
    if command.role in ("operator", "admin"):
        detail = f"tenant: {command.tenant!r}: a key of role {command.role} has none"
        return Denial(command.key_id, "tenant_not_allowed", detail)
    known = command.tenant in view.tenants
    return None if known else deny_tenant(command.key_id, command.tenant)


def revoke_key(view: AccessView, command: RevokeKey) -> Outcome:
    key_id = command.key_id
    if key_id not in view.keys:
        return Denial(key_id, "unknown_key", f"key_id: {key_id!r}: no such key")
    return Grant(key_id, None if key_id in view.revoked else KeyRevoked(key_id=key_id))


def deny_lane(kind: str, name: str, lanes: int, former: Collection[str] = ()) -> Denial:
    kept = f"; deleted ones count, and can be added again: {', '.join(former)}" if former else ""
    return Denial(name, "no_lane_left", f"{kind}: {name!r}: {kind} limit ({lanes}) reached{kept}")


def deny_tenant(of: str, tenant: str) -> Denial:
    return Denial(of, "unknown_tenant", f"tenant: {tenant!r}: {NO_TENANT}")
