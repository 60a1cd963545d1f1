"""The fold of the access ledger that every service keeps: tenants, pools, endpoints and keys."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.contracts.access import KeyCreated, KeyRevoked, Role, TenantRegistered, TenantRetired
from shared.contracts.base import Event
from shared.contracts.bounds import TenantBounds, bounds_in_force
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted
from shared.contracts.enrolment import NodeTokenCreated
from shared.contracts.job_spec import PriorityClass
from shared.contracts.keys import parse_key, verify_secret
from shared.contracts.node_registry import NodeRegistry
from shared.contracts.pools import RELEASE, PoolConfigured, PoolDeleted
from shared.contracts.secret_registry import SecretRegistry
from shared.contracts.secrets import SecretDeleted, SecretRewrapped, SecretStored
from shared.contracts.user_registry import UserRegistry
from shared.contracts.users import UserDeleted, UserRegistered
from shared.contracts.webhook_registry import WebhookRegistry
from shared.contracts.webhooks import WebhookChanged, WebhookCreated, WebhookDeleted

NO_HASH = "0" * 64
"""The hash of no secret: an unknown key id is refused as slowly as a wrong secret."""

INSTALLATION_CHARS = 12

RANK: dict[Role, int] = {"viewer": 0, "submitter": 1, "operator": 2, "admin": 3}


class Bearer(NamedTuple):
    """The bearer of a key or token; `tenant` is None for operators and admins.

    A token has its expiry in epoch seconds, and its subject as the key id.
    """

    key_id: str
    role: Role
    tenant: str | None
    expires_s: float | None = None
    models: tuple[str, ...] = ()
    """Models that it may call; empty: those of its tenant."""
    user: str | None = None
    """Person or robot that jobs of its key belong to; None: they name one."""
    pools: tuple[str, ...] = ()
    """Pools that it may use; empty: those of its tenant."""
    highest_class: PriorityClass | None = None
    max_job_gpus: float | None = None

    @property
    def principal(self) -> str:
        """Return the principal for the audit."""
        return f"{'key' if self.expires_s is None else 'oidc'}:{self.key_id}"

    def has_role(self, role: Role) -> bool:
        """Return whether the bearer has this role or a higher one."""
        return RANK[self.role] >= RANK[role]

    def may_call(self, model: str, endpoint: EndpointConfigured) -> bool:
        """Return whether key and tenant may call the endpoint by this name of it."""
        tenant_may = not endpoint.tenants or self.tenant in endpoint.tenants
        return tenant_may and (not self.models or bool({model, endpoint.endpoint} & {*self.models}))


@dataclass(slots=True)
class AccessView:
    """The registry of an installation; `apply` folds the events in their order."""

    tenants: dict[str, TenantRegistered] = field(default_factory=dict)
    retired: dict[str, None] = field(default_factory=dict)
    pools: dict[str, PoolConfigured] = field(default_factory=dict)
    former_lanes: dict[str, int] = field(default_factory=dict)
    """Lanes of deleted pools, which no other pool gets: their ledgers hold its history."""
    former_release: int = RELEASE
    """Release of the pool that was deleted last: the installation's while it has no pool."""
    endpoints: dict[str, EndpointConfigured] = field(default_factory=dict)
    endpoint_of_model: dict[str, str] = field(default_factory=dict)
    """The endpoint by each of its names: its own, its aliases, its adapters."""
    keys: dict[str, KeyCreated] = field(default_factory=dict)
    revoked: dict[str, None] = field(default_factory=dict)
    enrolled: NodeRegistry = field(default_factory=NodeRegistry)
    secrets: SecretRegistry = field(default_factory=SecretRegistry)
    webhooks: WebhookRegistry = field(default_factory=WebhookRegistry)
    users: UserRegistry = field(default_factory=UserRegistry)
    installation: str = ""
    """Id of the installation, from the first secret of its ledger, which no other one has: it is
    made once, and a backup keeps it. Empty before there is a key or join token."""

    def apply(self, event: Event) -> None:
        self._note_installation(event)
        match event:
            case TenantRegistered():
                self._register(event)
            case TenantRetired(tenant=tenant):
                self.retired[tenant] = None
                self.secrets.drop(tenant)
                self.webhooks.drop(tenant)
                self.users.drop(tenant)
            case PoolConfigured() | PoolDeleted():
                self._note_pool(event)
            case EndpointConfigured():
                self._remove_endpoint(event.endpoint)
                self.endpoints[event.endpoint] = event
                self.endpoint_of_model |= dict.fromkeys(event.models, event.endpoint)
            case EndpointDeleted(endpoint=endpoint):
                self._remove_endpoint(endpoint)
            case KeyCreated() | KeyRevoked():
                self._note_key(event)
            case SecretStored() | SecretRewrapped() | SecretDeleted():
                self.secrets.apply(event)
            case WebhookCreated() | WebhookChanged() | WebhookDeleted():
                self.webhooks.apply(event)
            case UserRegistered() | UserDeleted():
                self.users.apply(event)
            case _:
                self.enrolled.apply(event)

    def authenticate(self, key: str) -> Bearer | None:
        """Return the bearer of a key, None for a malformed, unknown, wrong or revoked one."""
        parsed = parse_key(key)
        if parsed is None:
            return None
        created = self.keys.get(parsed.key_id)
        is_right = verify_secret(parsed.secret, created.sha256 if created else NO_HASH)
        if created is None or not is_right or parsed.key_id in self.revoked:
            return None
        return Bearer(
            created.key_id,
            created.role,
            created.tenant,
            models=created.models,
            user=created.user,
            pools=created.pools,
            highest_class=created.highest_class,
            max_job_gpus=created.max_job_gpus,
        )

    def keys_of(self, tenant: str, user: str) -> list[KeyCreated]:
        """Return the valid keys of a user."""
        return [
            key
            for key in self.keys.values()
            if (key.tenant, key.user) == (tenant, user) and key.key_id not in self.revoked
        ]

    def is_unknown_key(self, key: str) -> bool:
        """Return whether the key is well-formed but unknown: it may have been created lately."""
        parsed = parse_key(key)
        return parsed is not None and parsed.key_id not in self.keys

    def is_active(self, tenant: str) -> bool:
        """Return whether the tenant may submit jobs."""
        return tenant in self.tenants and tenant not in self.retired

    @property
    def active_tenants(self) -> list[str]:
        """Tenants that may submit jobs."""
        return [tenant for tenant in self.tenants if tenant not in self.retired]

    @property
    def is_finished(self) -> bool:
        """Return whether no earlier release can take over again."""
        return self.release >= RELEASE

    @property
    def release(self) -> int:
        """Earliest release of its pools, which a new one gets: an upgrade is finished by a command
        alone.
        """
        return min((pool.release for pool in self.pools.values()), default=self.former_release)

    def bounds_of(self, tenant: str) -> TenantBounds:
        """Return the bounds of a tenant."""
        registered = self.tenants.get(tenant)
        return bounds_in_force(registered.bounds if registered else None)

    def may_use(self, tenant: str, pool: PoolConfigured) -> bool:
        """Return whether pool and tenant both allow the tenant's jobs there."""
        pools = self.bounds_of(tenant).pools
        return pool.is_open_to(tenant) and (not pools or pool.pool in pools)

    def number_of(self, tenant: str) -> int:
        """Return the number of a tenant, the next free one for a new tenant.

        Tenants are retired, never removed, so the count of them was never a number before.
        """
        registered = self.tenants.get(tenant)
        known = registered.number if registered else None
        return len(self.tenants) if known is None else known

    def _numbered(self, event: TenantRegistered) -> TenantRegistered:
        """Return the event with the number that an older version did not write."""
        if event.number is not None:
            return event
        return event.model_copy(update={"number": self.number_of(event.tenant)})

    def pool(self, name: str) -> PoolConfigured | None:
        return self.pools.get(name)

    def default_pool(self, tenant: str) -> str | None:
        """Return the pool of submissions of that tenant that name none."""
        registered = self.tenants.get(tenant)
        return registered.default_pool if registered else None

    def endpoint(self, model: str) -> EndpointConfigured | None:
        """Return the endpoint that serves a model, by its name, an alias or an adapter."""
        return self.endpoints.get(self.endpoint_of_model.get(model, ""))

    def _register(self, event: TenantRegistered) -> None:
        """Note a tenant; under the name of a retired one, the keys of that one are revoked."""
        tenant = event.tenant
        if tenant in self.retired:
            former = [key.key_id for key in self.keys.values() if key.tenant == tenant]
            self.revoked |= dict.fromkeys(former)
            del self.retired[tenant]
        self.tenants[tenant] = self._numbered(event)

    def _note_installation(self, event: Event) -> None:
        if not self.installation and isinstance(event, KeyCreated | NodeTokenCreated):
            self.installation = _id_from(event.sha256)

    def _note_pool(self, event: PoolConfigured | PoolDeleted) -> None:
        if isinstance(event, PoolConfigured):
            self.pools[event.pool] = event
            self.former_lanes.pop(event.pool, None)
        else:
            deleted = self.pools.pop(event.pool, None)
            self.former_release = deleted.release if deleted else self.former_release
            self.former_lanes[event.pool] = event.partition

    def _note_key(self, event: KeyCreated | KeyRevoked) -> None:
        if isinstance(event, KeyCreated):
            self.keys[event.key_id] = event
        else:
            self.revoked[event.key_id] = None

    def _remove_endpoint(self, endpoint: str) -> None:
        former = self.endpoints.pop(endpoint, None)
        for model in former.models if former is not None else ():
            self.endpoint_of_model.pop(model, None)


def _id_from(sha256: str) -> str:
    return hashlib.sha256(f"installation {sha256}".encode()).hexdigest()[:INSTALLATION_CHARS]
