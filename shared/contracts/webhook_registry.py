"""The webhooks of tenants as the access ledger has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.contracts.webhooks import (
    WebhookChanged,
    WebhookCreated,
    WebhookDeleted,
    WebhookSettings,
)


@dataclass(slots=True)
class WebhookRegistry:
    """Present webhooks by tenant and name; `apply` folds the events in their order."""

    by_tenant: dict[str, dict[str, WebhookCreated]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[WebhookCreated]:
        return (hook for hooks in self.by_tenant.values() for hook in hooks.values())

    def of(self, tenant: str) -> dict[str, WebhookCreated]:
        return self.by_tenant.get(tenant, {})

    def get(self, tenant: str, name: str) -> WebhookCreated | None:
        return self.of(tenant).get(name)

    def drop(self, tenant: str) -> None:
        """Delete all webhooks of a tenant."""
        self.by_tenant.pop(tenant, None)

    def apply(self, event: WebhookCreated | WebhookChanged | WebhookDeleted) -> None:
        hooks = self.by_tenant.setdefault(event.tenant, {})
        match event:
            case WebhookCreated():
                hooks[event.name] = event
            case WebhookChanged():
                if (hook := hooks.get(event.name)) is not None:
                    changes = {name: getattr(event, name) for name in WebhookSettings.model_fields}
                    hooks[event.name] = hook.model_copy(update=changes)
            case WebhookDeleted():
                hooks.pop(event.name, None)
