"""The registry has what was created and not deleted, as it was changed last."""

from __future__ import annotations

from shared.contracts.webhook_registry import WebhookRegistry
from shared.contracts.webhooks import WebhookChanged, WebhookCreated, WebhookDeleted


def created(name: str) -> WebhookCreated:
    return WebhookCreated(
        tenant="ada",
        name=name,
        url="https://example.org",
        events=("failed",),
        created_by="key:a",
        created_at=1,
    )


def test_created_changed_and_deleted_webhooks() -> None:
    registry = WebhookRegistry()
    for name in ("a", "b"):
        registry.apply(created(name))
    registry.apply(WebhookDeleted(tenant="ada", name="a"))
    assert list(registry) == [created("b")] == list(registry.of("ada").values())
    assert registry.get("ada", "a") is None and registry.of("eve") == {}
    url = "https://b.example.org"
    registry.apply(
        WebhookChanged(tenant="ada", name="b", url=url, events=("started",), changed_at=9)
    )
    [changed] = registry
    assert changed == created("b").model_copy(update={"url": url, "events": ("started",)})
    registry.drop("ada")
    assert list(registry) == []
