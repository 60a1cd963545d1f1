"""The users of tenants as the access ledger has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from shared.contracts.bounds import UserBounds
from shared.contracts.users import UserDeleted, UserRegistered

NO_USERS: Mapping[str, UserRegistered] = MappingProxyType({})
NO_BOUNDS = UserBounds()


@dataclass(slots=True)
class UserRegistry:
    """Registered users by tenant and name; `apply` folds the events in their order."""

    by_tenant: dict[str, dict[str, UserRegistered]] = field(default_factory=dict)

    def of(self, tenant: str) -> Mapping[str, UserRegistered]:
        return self.by_tenant.get(tenant, NO_USERS)

    def get(self, tenant: str, user: str) -> UserRegistered | None:
        return self.of(tenant).get(user)

    def bounds_of(self, tenant: str, user: str | None) -> UserBounds:
        """Return the bounds of a user; one that is not registered has none."""
        registered = self.get(tenant, user) if user else None
        return registered.bounds if registered else NO_BOUNDS

    def drop(self, tenant: str) -> None:
        """Delete all users of a tenant."""
        self.by_tenant.pop(tenant, None)

    def apply(self, event: UserRegistered | UserDeleted) -> None:
        users = self.by_tenant.setdefault(event.tenant, {})
        match event:
            case UserRegistered():
                users[event.user] = event
            case UserDeleted():
                users.pop(event.user, None)
