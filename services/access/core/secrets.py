"""The outcome of each command about secrets; access sees ciphertext alone."""

from __future__ import annotations

from services.access.core.outcomes import Denial, Grant, Outcome, deny_tenant
from shared.contracts.registry import AccessView
from shared.contracts.secrets import (
    MAX_ADDRESSES,
    MAX_SEALED_CHARS,
    MAX_SECRETS,
    DeleteSecret,
    RewrapSecret,
    SecretDeleted,
    SecretRewrapped,
    SecretStored,
    StoreSecret,
    is_reserved,
)

SecretCommand = StoreSecret | RewrapSecret | DeleteSecret


def decide_secret(view: AccessView, command: SecretCommand, now: int) -> Outcome:
    match command:
        case StoreSecret():
            return store_secret(view, command, now)
        case RewrapSecret():
            return rewrap_secret(view, command)
        case DeleteSecret():
            return delete_secret(view, command)


def store_secret(view: AccessView, command: StoreSecret, now: int) -> Outcome:
    """Store a secret; the version is part of what was encrypted, so it cannot be chosen here."""
    of, tenant = _of(command), command.tenant
    if not view.is_active(tenant):
        return deny_tenant(of, tenant)
    existing = view.secrets.get(tenant, command.name)
    if existing is not None and _is_same(existing, command):
        return Grant(of, None)
    if command.version != (latest := view.secrets.next_version(tenant)):
        return _deny_version(of, command.version, f"{latest} is the next of tenant {tenant}")
    if denial := _deny_size(view, command):
        return denial
    return Grant(of, SecretStored(**dict(command), set_at=now))


def rewrap_secret(view: AccessView, command: RewrapSecret) -> Outcome:
    of, existing = _of(command), view.secrets.get(command.tenant, command.name)
    if existing is None:
        return _deny_unknown(of, command.name)
    if existing.version != command.version:
        return _deny_version(of, command.version, f"the present one is {existing.version}")
    same = existing.sealed.key == command.key
    return Grant(of, None if same else SecretRewrapped(**dict(command)))


def delete_secret(view: AccessView, command: DeleteSecret) -> Outcome:
    of = _of(command)
    if view.secrets.get(command.tenant, command.name) is None:
        return _deny_unknown(of, command.name)
    return Grant(of, SecretDeleted(tenant=command.tenant, name=command.name))


def _of(command: SecretCommand) -> str:
    return f"{command.tenant}/{command.name}"


def _is_same(existing: SecretStored, command: StoreSecret) -> bool:
    return (existing.version, existing.sealed) == (command.version, command.sealed)


def _deny_size(view: AccessView, command: StoreSecret) -> Denial | None:
    others = [
        secret for name, secret in view.secrets.of(command.tenant).items() if name != command.name
    ]
    most, kind = (MAX_SECRETS, "secrets")
    if is_reserved(command.name):
        most, kind = (MAX_ADDRESSES, "addresses of users")
    like = [other for other in others if is_reserved(other.name) == is_reserved(command.name)]
    if len(like) >= most:
        detail = f"name: {command.name!r}: {most} {kind} per tenant are allowed"
        return Denial(_of(command), "too_many_secrets", detail)
    chars = sum(len(secret.sealed.data) for secret in others) + len(command.sealed.data)
    if chars > MAX_SEALED_CHARS:
        rule = f"{MAX_SEALED_CHARS} characters of ciphertext per tenant are allowed"
        return Denial(_of(command), "secrets_too_large", f"value: {chars} characters: {rule}")
    return None


def _deny_version(of: str, version: int, rule: str) -> Denial:
    return Denial(of, "version_conflict", f"version: {version}: {rule}; repeat the change")


def _deny_unknown(of: str, name: str) -> Denial:
    return Denial(of, "unknown_secret", f"name: {name!r}: no such secret of the tenant")
