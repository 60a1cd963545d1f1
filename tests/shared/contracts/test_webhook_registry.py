"""The registry has what was created and not deleted."""

from __future__ import annotations

from shared.contracts.webhook_registry import WebhookRegistry
from shared.contracts.webhooks import WebhookCreated, WebhookDeleted


def created(name: str) -> WebhookCreated:
    return WebhookCreated(
        tenant="ada",
        name=name,
        url="https://example.org",
        events=("failed",),
        created_by="key:a",
        created_at=1,
    )


def test_created_and_deleted_webhooks() -> None:
    registry = WebhookRegistry()
    for name in ("a", "b"):
        registry.apply(created(name))
    registry.apply(WebhookDeleted(tenant="ada", name="a"))
    assert list(registry) == [created("b")] == list(registry.of("ada").values())
    assert registry.get("ada", "a") is None and registry.of("eve") == {}
    registry.drop("ada")
    assert list(registry) == []
