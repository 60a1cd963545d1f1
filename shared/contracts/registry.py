"""Who may do what and where things are: the fold of `access` that every service keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.contracts.access import (
    EndpointConfigured,
    KeyCreated,
    KeyRevoked,
    PoolConfigured,
    Role,
    TenantRegistered,
    TenantRetired,
)
from shared.contracts.base import Event
from shared.contracts.keys import parse_key, verify_secret

NOBODY = "0" * 64
"""No secret has this hash: an unknown key id costs the same time as a wrong secret."""

RANK: dict[Role, int] = {"viewer": 0, "submitter": 1, "operator": 2, "admin": 3}


class Bearer(NamedTuple):
    """Who sent a request, as their key or token says; `tenant` is None for those who serve all.

    A token has the second of its end, and its subject in the place of a key's id.
    """

    key_id: str
    role: Role
    tenant: str | None
    expires_s: float | None = None

    @property
    def principal(self) -> str:
        """Who it was, for the record."""
        return f"{'key' if self.expires_s is None else 'oidc'}:{self.key_id}"

    def has_role(self, role: Role) -> bool:
        """Roles are a ladder: viewer, submitter, operator, admin."""
        return RANK[self.role] >= RANK[role]


@dataclass(slots=True)
class AccessView:
    """Apply every event of the access ledger in order; other events are passed over."""

    tenants: dict[str, TenantRegistered] = field(default_factory=dict)
    retired: dict[str, None] = field(default_factory=dict)
    pools: dict[str, PoolConfigured] = field(default_factory=dict)
    endpoints: dict[str, EndpointConfigured] = field(default_factory=dict)
    keys: dict[str, KeyCreated] = field(default_factory=dict)
    revoked: dict[str, None] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        match event:
            case TenantRegistered(tenant=tenant):
                self.tenants[tenant] = event
                self.retired.pop(tenant, None)
            case TenantRetired(tenant=tenant):
                self.retired[tenant] = None
            case PoolConfigured(pool=pool):
                self.pools[pool] = event
            case EndpointConfigured(endpoint=endpoint):
                self.endpoints[endpoint] = event
            case KeyCreated(key_id=key_id):
                self.keys[key_id] = event
            case KeyRevoked(key_id=key_id):
                self.revoked[key_id] = None

    def authenticate(self, key: str) -> Bearer | None:
        """Whose key it is; None for a malformed, unknown, wrong or revoked one."""
        parsed = parse_key(key)
        if parsed is None:
            return None
        found = self.keys.get(parsed.key_id)
        right = verify_secret(parsed.secret, found.sha256 if found else NOBODY)
        if found is None or not right or parsed.key_id in self.revoked:
            return None
        return Bearer(found.key_id, found.role, found.tenant)

    def is_unknown_key(self, key: str) -> bool:
        """A key, and nobody's: it may have been made where this view does not reach yet."""
        parsed = parse_key(key)
        return parsed is not None and parsed.key_id not in self.keys

    def is_active(self, tenant: str) -> bool:
        """May the tenant submit?"""
        return tenant in self.tenants and tenant not in self.retired

    def active_tenants(self) -> Iterator[TenantRegistered]:
        return (found for name, found in self.tenants.items() if name not in self.retired)

    def pool(self, name: str) -> PoolConfigured | None:
        return self.pools.get(name)

    def pool_of_lane(self, partition: int) -> PoolConfigured | None:
        return next((p for p in self.pools.values() if p.partition == partition), None)

    def default_pool(self, tenant: str) -> str | None:
        """Where a submit of that tenant goes that names none."""
        found = self.tenants.get(tenant)
        return found.default_pool if found else None

    def endpoint(self, name: str) -> EndpointConfigured | None:
        return self.endpoints.get(name)
