"""Access creates a webhook with its signing secret, both or neither, within bounds."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.access.core.outcomes import Denial, Grant
from services.access.core.webhooks import WebhookCommand, decide_webhook
from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.registry import AccessView
from shared.contracts.secrets import SealedValue, SecretDeleted, SecretStored, WrappedKey
from shared.contracts.updates import UpdateWebhook
from shared.contracts.webhooks import (
    MAX_WEBHOOKS,
    CreateWebhook,
    DeleteWebhook,
    SendTestEvent,
    WebhookChanged,
    WebhookCreated,
    WebhookDeleted,
    WebhookTested,
)

AT = 1_700_000_000_000
SEALED = SealedValue(key=WrappedKey(key_id="k1", data="a2V5"), data="dmFsdWU")


def create(name: str = "ci", version: int = 1, **more: object) -> CreateWebhook:
    return CreateWebhook.model_validate(
        {
            "tenant": "ada",
            "name": name,
            "url": "https://hooks.example.org/berth",
            "events": ["failed"],
            "version": version,
            "sealed": SEALED,
            "created_by": "key:a",
            **more,
        }
    )


@pytest.fixture
def view() -> AccessView:
    view = AccessView()
    view.apply(TenantRegistered(tenant="ada", default_pool="gpu"))
    return view


def grant(view: AccessView, command: WebhookCommand) -> Grant:
    outcome = decide_webhook(view, command, AT)
    assert isinstance(outcome, Grant)
    for event in (outcome.event, *outcome.others):
        assert event is not None
        view.apply(event)
    return outcome


def reason(view: AccessView, command: WebhookCommand) -> str:
    outcome = decide_webhook(view, command, AT)
    assert isinstance(outcome, Denial)
    return outcome.reason


def test_a_webhook_comes_with_its_signing_secret(view: AccessView) -> None:
    created, (stored,) = grant(view, create())[1:]
    assert isinstance(created, WebhookCreated) and created.created_at == AT
    assert isinstance(stored, SecretStored) and stored.sealed == SEALED
    assert view.webhooks.get("ada", "ci") == created
    assert view.secrets.get("ada", "berth.webhook.ci") == stored


def update(**changes: object) -> UpdateWebhook:
    return UpdateWebhook.model_validate({"tenant": "ada", "name": "ci", **changes})


def test_a_change_names_what_it_changes_and_keeps_the_rest(view: AccessView) -> None:
    grant(view, create(events=["failed", "started"]))
    changed = grant(view, update(url="https://b.example.org/")).event
    assert isinstance(changed, WebhookChanged) and changed.changed_at == AT
    hook = view.webhooks.get("ada", "ci")
    assert hook is not None and hook.events == ("failed", "started")
    assert (hook.url, hook.created_by) == ("https://b.example.org/", "key:a")
    assert view.secrets.get("ada", "berth.webhook.ci") is not None


def test_a_change_to_what_is_there_is_no_event(view: AccessView) -> None:
    grant(view, create())
    outcome = decide_webhook(view, update(events=["failed"], pools=None), AT)
    assert outcome == Grant("ada/ci", None)


@pytest.mark.parametrize("field", ["url", "events"])
def test_what_has_no_default_needs_a_value(field: str) -> None:
    with pytest.raises(ValidationError, match="a value is required"):
        update(**{field: None})


def test_a_webhook_is_deleted_with_its_signing_secret(view: AccessView) -> None:
    grant(view, create())
    deleted, others = grant(view, DeleteWebhook(tenant="ada", name="ci"))[1:]
    assert deleted == WebhookDeleted(tenant="ada", name="ci")
    assert others == (SecretDeleted(tenant="ada", name="berth.webhook.ci"),)
    assert view.webhooks.get("ada", "ci") is None


def test_a_test_is_an_event_of_the_webhook(view: AccessView) -> None:
    grant(view, create())
    command = SendTestEvent(tenant="ada", name="ci")
    assert grant(view, command).event == WebhookTested(tenant="ada", name="ci")


def test_what_cannot_be_is_refused_with_its_reason(view: AccessView) -> None:
    assert reason(view, create(pools=["nowhere"])) == "unknown_pool"
    assert reason(view, create(version=2)) == "version_conflict"
    assert reason(view, create(tenant="eve")) == "unknown_tenant"
    assert reason(view, DeleteWebhook(tenant="ada", name="ci")) == "unknown_webhook"
    assert reason(view, SendTestEvent(tenant="ada", name="ci")) == "unknown_webhook"
    assert reason(view, update(url="https://b.example.org/")) == "unknown_webhook"
    grant(view, create())
    assert reason(view, update(pools=["nowhere"])) == "unknown_pool"
    assert reason(view, create(version=2)) == "webhook_exists"


def test_a_tenant_has_a_bounded_number_of_webhooks(view: AccessView) -> None:
    for number in range(MAX_WEBHOOKS):
        grant(view, create(f"h{number}", number + 1))
    assert reason(view, create("more", MAX_WEBHOOKS + 1)) == "too_many_webhooks"


def test_a_tenant_that_is_retired_has_no_webhook(view: AccessView) -> None:
    grant(view, create())
    view.apply(TenantRetired(tenant="ada"))
    assert list(view.webhooks) == []
    assert reason(view, create(version=2)) == "unknown_tenant"
