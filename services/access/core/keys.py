"""The creation and revocation of API keys."""

from __future__ import annotations

from services.access.core.outcomes import Denial, Grant, Outcome, deny_tenant
from shared.contracts.access import CreateKey, KeyCreated, KeyRevoked, RevokeKey
from shared.contracts.registry import AccessView


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
