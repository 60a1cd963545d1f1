"""The secrets of tenants as the access ledger has them: ciphertext, versions, who set them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.contracts.secrets import SecretDeleted, SecretRewrapped, SecretStored

SecretEvent = SecretStored | SecretRewrapped | SecretDeleted


@dataclass(slots=True)
class SecretRegistry:
    """Present secrets by tenant and name; `apply` folds the events in their order."""

    by_tenant: dict[str, dict[str, SecretStored]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    """Latest version of each tenant. It counts all secrets of the tenant, deleted ones too, so that
    no ciphertext of earlier times has the version of a later one."""

    def __iter__(self) -> Iterator[SecretStored]:
        return (secret for secrets in self.by_tenant.values() for secret in secrets.values())

    def of(self, tenant: str) -> dict[str, SecretStored]:
        return self.by_tenant.get(tenant, {})

    def get(self, tenant: str, name: str) -> SecretStored | None:
        return self.of(tenant).get(name)

    def next_version(self, tenant: str) -> int:
        return self.versions.get(tenant, 0) + 1

    def drop(self, tenant: str) -> None:
        """Delete all secrets of a tenant; its versions go on."""
        self.by_tenant.pop(tenant, None)

    def apply(self, event: SecretEvent) -> None:
        secrets = self.by_tenant.setdefault(event.tenant, {})
        match event:
            case SecretStored():
                secrets[event.name] = event
                self.versions[event.tenant] = event.version
            case SecretRewrapped() if event.name in secrets:
                before = secrets[event.name]
                sealed = before.sealed.model_copy(update={"key": event.key})
                secrets[event.name] = before.model_copy(update={"sealed": sealed})
            case SecretDeleted():
                secrets.pop(event.name, None)
