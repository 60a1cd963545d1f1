"""Pools, tenants, quotas, keys, secrets, users and their addresses, webhooks and endpoints.

Operators name the tenant; None is that of the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth_client import answers
from berth_client.calls import PAGE, Call, Query, get, part

Settings = Mapping[str, object]
Receipt = Call[answers.CommandReceipt]


def create_pool(pool: str, settings: Settings) -> Receipt:
    """Create a pool, or set all of its settings; those that are not named get their defaults."""
    return Call("POST", "/v1/pools", body={"pool": pool, **settings})


def update_pool(pool: str, settings: Settings) -> Receipt:
    """Change the named settings; null is the default of one."""
    return _change(f"/v1/pools/{part(pool)}", settings)


def delete_pool(pool: str) -> Receipt:
    return _delete(f"/v1/pools/{part(pool)}")


def create_tenant(tenant: str, default_pool: str, settings: Settings | None = None) -> Receipt:
    body = {"tenant": tenant, "default_pool": default_pool, **(settings or {})}
    return Call("POST", "/v1/tenants", body=body)


def update_tenant(tenant: str, settings: Settings) -> Receipt:
    """Change the named settings and bounds."""
    return _change(f"/v1/tenants/{part(tenant)}", settings)


def retire_tenant(tenant: str) -> Receipt:
    return _delete(f"/v1/tenants/{part(tenant)}")


def set_quota(tenant: str, bounds: Settings) -> Receipt:
    """Set the quota of a tenant in a pool; a bound that is not named gets its default."""
    return Call("POST", f"/v1/tenants/{part(tenant)}/quota", body=bounds, repeatable=True)


def update_quota(tenant: str, bounds: Settings) -> Receipt:
    """Change the named bounds of a tenant in a pool."""
    return _change(f"/v1/tenants/{part(tenant)}/quota", bounds)


def keys(tenant: str | None = None) -> Call[answers.Page[answers.Key]]:
    return get("/v1/keys", tenant=tenant)


def tenant_keys(tenant: str) -> Call[answers.Page[answers.Key]]:
    return get(f"/v1/tenants/{part(tenant)}/keys")


def create_key(settings: Settings) -> Call[answers.KeyReceipt]:
    """Create a key; the receipt shows it once."""
    return Call("POST", "/v1/keys", body=settings)


def create_tenant_key(tenant: str, settings: Settings | None = None) -> Call[answers.KeyReceipt]:
    return Call("POST", f"/v1/tenants/{part(tenant)}/keys", body=settings or {})


def revoke_key(key_id: str) -> Receipt:
    return _delete(f"/v1/keys/{part(key_id)}")


def secrets(tenant: str | None = None) -> Call[answers.Page[answers.Secret]]:
    """Return the call for the names of secrets; no route returns a value."""
    return get("/v1/secrets", tenant=tenant, limit=PAGE)


def set_secret(name: str, value: str, tenant: str | None = None) -> Call[answers.SecretReceipt]:
    path = f"/v1/secrets/{part(name)}"
    return Call("PUT", path, {"tenant": tenant}, {"value": value}, repeatable=True)


def delete_secret(name: str, tenant: str | None = None) -> Receipt:
    return _delete(f"/v1/secrets/{part(name)}", {"tenant": tenant})


def rotate_secrets() -> Call[answers.Rotation]:
    """Bring secrets under the first key of the gateway's file of keys, until none is `left`."""
    return Call("POST", "/v1/secrets/rotate", repeatable=True)


def create_user(user: str, bounds: Settings | None = None, tenant: str | None = None) -> Receipt:
    """Register a user; a bound that is not named gets its default."""
    return Call("POST", "/v1/users", {"tenant": tenant}, {"user": user, **(bounds or {})})


def update_user(user: str, bounds: Settings, tenant: str | None = None) -> Receipt:
    """Change the named bounds; null is the default of one."""
    return _change(f"/v1/users/{part(user)}", bounds, {"tenant": tenant})


def delete_user(user: str, tenant: str | None = None) -> Receipt:
    """Delete a user, its keys and its address; its jobs go on."""
    return _delete(f"/v1/users/{part(user)}", {"tenant": tenant})


def set_address(user: str, address: str, tenant: str | None = None) -> Call[answers.SecretReceipt]:
    """Set the address for mails about the user's jobs."""
    path = f"/v1/users/{part(user)}/mail"
    return Call("PUT", path, {"tenant": tenant}, {"address": address}, repeatable=True)


def delete_address(user: str, tenant: str | None = None) -> Receipt:
    return _delete(f"/v1/users/{part(user)}/mail", {"tenant": tenant})


def webhooks(tenant: str | None = None) -> Call[answers.Page[answers.Webhook]]:
    return get("/v1/webhooks", tenant=tenant, limit=PAGE)


def create_webhook(settings: Settings, tenant: str | None = None) -> Call[answers.WebhookReceipt]:
    """Create a webhook; the receipt shows once the secret that signs its requests."""
    return Call("POST", "/v1/webhooks", {"tenant": tenant}, settings)


def update_webhook(name: str, settings: Settings, tenant: str | None = None) -> Receipt:
    return _change(f"/v1/webhooks/{part(name)}", settings, {"tenant": tenant})


def delete_webhook(name: str, tenant: str | None = None) -> Receipt:
    return _delete(f"/v1/webhooks/{part(name)}", {"tenant": tenant})


def try_webhook(name: str, tenant: str | None = None) -> Receipt:
    """Send one event to it now."""
    return Call("POST", f"/v1/webhooks/{part(name)}/test", {"tenant": tenant})


def endpoints() -> Call[answers.Page[answers.Endpoint]]:
    return get("/v1/endpoints")


def endpoint(name: str) -> Call[answers.Endpoint]:
    return get(f"/v1/endpoints/{part(name)}")


def create_endpoint(name: str, settings: Settings) -> Receipt:
    """Create an endpoint, or set all of its settings."""
    return Call("POST", "/v1/endpoints", body={"endpoint": name, **settings})


def update_endpoint(name: str, settings: Settings) -> Receipt:
    return _change(f"/v1/endpoints/{part(name)}", settings)


def delete_endpoint(name: str) -> Receipt:
    return _delete(f"/v1/endpoints/{part(name)}")


def _change(path: str, settings: Settings, query: Query | None = None) -> Call[Any]:
    """Return a change of what is named: one with `if_version` is refused the second time."""
    return Call("PATCH", path, query or {}, settings, repeatable="if_version" not in settings)


def _delete(path: str, query: Query | None = None) -> Call[Any]:
    return Call("DELETE", path, query or {})
