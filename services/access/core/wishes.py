"""What each command of access would change, or why it is refused: one function per command."""

from __future__ import annotations

from typing import NamedTuple

from services.access.core.lanes import lowest_free
from shared.contracts.access import (
    AttemptsRefused,
    ConfigureEndpoint,
    ConfigurePool,
    CreateKey,
    EndpointConfigured,
    KeyCreated,
    KeyRevoked,
    NoteAttempts,
    PoolConfigured,
    RegisterTenant,
    RetireTenant,
    RevokeKey,
    TenantRegistered,
    TenantRetired,
)
from shared.contracts.base import Command, Event
from shared.contracts.registry import AccessView


class Granted(NamedTuple):
    """The fact that the wish leads to; None when things are so already."""

    of: str
    event: Event | None


class Refused(NamedTuple):
    """`reason` is for machines, `detail` says field, value and rule."""

    of: str
    reason: str
    detail: str


Outcome = Granted | Refused


def outcome(view: AccessView, lanes: int, wish: Command) -> Outcome:
    match wish:
        case ConfigurePool():
            return configure_pool(view, lanes, wish)
        case ConfigureEndpoint():
            return configure_endpoint(view, lanes, wish)
        case RegisterTenant():
            return register_tenant(view, wish)
        case RetireTenant():
            return retire_tenant(view, wish)
        case CreateKey():
            return create_key(view, wish)
        case RevokeKey():
            return revoke_key(view, wish)
        case NoteAttempts():
            event = AttemptsRefused(gateway=wish.gateway, attempts=wish.attempts)
            return Granted(wish.gateway, event)
        case _:
            return Refused("", "unknown_command", f"access has no answer to {wish.TYPE}")


def configure_pool(view: AccessView, lanes: int, wish: ConfigurePool) -> Outcome:
    known = view.pools.get(wish.pool)
    taken = (pool.partition for pool in view.pools.values())
    lane = known.partition if known else lowest_free(taken, lanes)
    if lane is None:
        return no_lane_left("pool", wish.pool, lanes)
    event = PoolConfigured(partition=lane, **wish.model_dump())
    return Granted(wish.pool, None if event == known else event)


def configure_endpoint(view: AccessView, lanes: int, wish: ConfigureEndpoint) -> Outcome:
    known = view.endpoints.get(wish.endpoint)
    taken = (endpoint.partition for endpoint in view.endpoints.values())
    lane = known.partition if known else lowest_free(taken, lanes)
    if lane is None:
        return no_lane_left("endpoint", wish.endpoint, lanes)
    event = EndpointConfigured(partition=lane, **wish.model_dump())
    return Granted(wish.endpoint, None if event == known else event)


def register_tenant(view: AccessView, wish: RegisterTenant) -> Outcome:
    if wish.default_pool not in view.pools:
        detail = f"default_pool: {wish.default_pool!r}: configure the pool first"
        return Refused(wish.tenant, "unknown_pool", detail)
    event = TenantRegistered(**wish.model_dump())
    same = event == view.tenants.get(wish.tenant) and view.is_active(wish.tenant)
    return Granted(wish.tenant, None if same else event)


def retire_tenant(view: AccessView, wish: RetireTenant) -> Outcome:
    if wish.tenant not in view.tenants:
        return unknown_tenant(wish.tenant, wish.tenant)
    active = view.is_active(wish.tenant)
    return Granted(wish.tenant, TenantRetired(tenant=wish.tenant) if active else None)


def create_key(view: AccessView, wish: CreateKey) -> Outcome:
    """A key id means one key for ever: it is never given another secret or another role."""
    event = KeyCreated(**wish.model_dump())
    if wish.key_id in view.revoked:
        return Refused(wish.key_id, "key_revoked", f"key_id: {wish.key_id!r}: take another id")
    known = view.keys.get(wish.key_id)
    if known is not None and known != event:
        return Refused(wish.key_id, "key_exists", f"key_id: {wish.key_id!r}: take another id")
    return misfit(view, wish) or Granted(wish.key_id, None if known else event)


def misfit(view: AccessView, wish: CreateKey) -> Refused | None:
    """Operators and admins serve all tenants, submitters exactly one, viewers either."""
    if wish.tenant is None:
        if wish.role == "submitter":
            return Refused(wish.key_id, "tenant_required", "tenant: absent: a submitter has one")
        return None
    if wish.role in ("operator", "admin"):
        detail = f"tenant: {wish.tenant!r}: a key of role {wish.role} has none"
        return Refused(wish.key_id, "tenant_not_allowed", detail)
    return None if wish.tenant in view.tenants else unknown_tenant(wish.key_id, wish.tenant)


def revoke_key(view: AccessView, wish: RevokeKey) -> Outcome:
    if wish.key_id not in view.keys:
        return Refused(wish.key_id, "unknown_key", f"key_id: {wish.key_id!r}: no such key")
    gone = wish.key_id in view.revoked
    return Granted(wish.key_id, None if gone else KeyRevoked(key_id=wish.key_id))


def no_lane_left(kind: str, name: str, lanes: int) -> Refused:
    return Refused(name, "no_lane_left", f"{kind}: {name!r}: all {lanes} lanes are given away")


def unknown_tenant(of: str, tenant: str) -> Refused:
    return Refused(of, "unknown_tenant", f"tenant: {tenant!r}: no such tenant")
