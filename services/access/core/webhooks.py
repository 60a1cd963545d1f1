"""The outcome of each command about webhooks; their signing secrets are secrets of the tenant."""

from __future__ import annotations

from services.access.core.outcomes import Denial, Grant, Outcome, deny_tenant
from services.access.core.secrets import store_secret
from shared.contracts.registry import AccessView
from shared.contracts.secrets import SIGNING, SecretDeleted, StoreSecret
from shared.contracts.updates import UpdateWebhook
from shared.contracts.webhooks import (
    MAX_WEBHOOKS,
    CreateWebhook,
    DeleteWebhook,
    SendTestEvent,
    WebhookChanged,
    WebhookCreated,
    WebhookDeleted,
    WebhookSettings,
    WebhookTested,
)

WebhookCommand = CreateWebhook | UpdateWebhook | DeleteWebhook | SendTestEvent


def decide_webhook(view: AccessView, command: WebhookCommand, now: int) -> Outcome:
    match command:
        case CreateWebhook():
            return create_webhook(view, command, now)
        case UpdateWebhook():
            return update_webhook(view, command, now)
        case DeleteWebhook():
            return delete_webhook(view, command)
        case SendTestEvent():
            return send_test_event(view, command)


def create_webhook(view: AccessView, command: CreateWebhook, now: int) -> Outcome:
    """Create the webhook and store its signing secret, both or neither."""
    of, hooks = _of(command), view.webhooks.of(command.tenant)
    if not view.is_active(command.tenant):
        return deny_tenant(of, command.tenant)
    if command.name in hooks:
        return Denial(of, "webhook_exists", f"name: {command.name!r}: delete that webhook first")
    if denial := _deny_unknown_pool(view, of, command.pools):
        return denial
    if len(hooks) >= MAX_WEBHOOKS:
        detail = f"name: {command.name!r}: {MAX_WEBHOOKS} webhooks per tenant are allowed"
        return Denial(of, "too_many_webhooks", detail)
    match store_secret(view, _signing_secret(command), now):
        case Denial() as denial:
            return denial._replace(of=of)
        case Grant(_, stored):
            settings = {name: getattr(command, name) for name in WebhookSettings.model_fields}
            created = WebhookCreated(
                **settings, tenant=command.tenant, created_by=command.created_by, created_at=now
            )
            return Grant(of, created, () if stored is None else (stored,))


def update_webhook(view: AccessView, command: UpdateWebhook, now: int) -> Outcome:
    """Change what the command names; the signing secret and the figures stay."""
    of, existing = _of(command), view.webhooks.get(command.tenant, command.name)
    if existing is None:
        return _deny_unknown(of, command.name)
    changes = command.changes()
    if denial := _deny_unknown_pool(view, of, changes.get("pools", ())):
        return denial
    kept = existing.model_dump(include=set(WebhookSettings.model_fields))
    settings = {**kept, **changes}
    if settings == kept:
        return Grant(of, None)
    return Grant(of, WebhookChanged(**settings, tenant=command.tenant, changed_at=now))


def delete_webhook(view: AccessView, command: DeleteWebhook) -> Outcome:
    of, tenant, name = _of(command), command.tenant, command.name
    if view.webhooks.get(tenant, name) is None:
        return _deny_unknown(of, name)
    secret = SIGNING + name
    is_stored = view.secrets.get(tenant, secret) is not None
    others = (SecretDeleted(tenant=tenant, name=secret),) if is_stored else ()
    return Grant(of, WebhookDeleted(tenant=tenant, name=name), others)


def send_test_event(view: AccessView, command: SendTestEvent) -> Outcome:
    of, tenant, name = _of(command), command.tenant, command.name
    if view.webhooks.get(tenant, name) is None:
        return _deny_unknown(of, name)
    return Grant(of, WebhookTested(tenant=tenant, name=name))


def _signing_secret(command: CreateWebhook) -> StoreSecret:
    return StoreSecret(
        tenant=command.tenant,
        name=SIGNING + command.name,
        version=command.version,
        sealed=command.sealed,
        set_by=command.created_by,
    )


def _of(command: WebhookCommand) -> str:
    return f"{command.tenant}/{command.name}"


def _deny_unknown_pool(view: AccessView, of: str, pools: tuple[str, ...]) -> Denial | None:
    """Return the refusal of settings that name a pool which does not exist."""
    unknown = [pool for pool in pools if pool not in view.pools]
    return Denial(of, "unknown_pool", f"pools: {unknown[0]!r}: no such pool") if unknown else None


def _deny_unknown(of: str, name: str) -> Denial:
    return Denial(of, "unknown_webhook", f"name: {name!r}: no such webhook of the tenant")
