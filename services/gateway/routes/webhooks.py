"""Webhooks of tenants: create, list, change, delete, test. Their signing secrets are shown once."""

from __future__ import annotations

import base64
import secrets
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field, field_validator

from berth_client import answers
from services.gateway.core.strict import parse_body
from services.gateway.reads.database import Row
from services.gateway.reads.paging import Limit, PageToken, page_of_entries
from services.gateway.requests.authorization import authorize, update_request
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import accepted_response, command_route, json_response
from services.gateway.requests.filters import check_tenant
from services.gateway.requests.secret_changes import (
    charge_change,
    decided,
    require_owner,
    store_sealed,
)
from services.gateway.requests.updates import require_finished
from services.gateway.responses.openapi import read_route
from services.gateway.responses.problem import not_found
from services.gateway.routes.submissions import TENANT_REQUIRED, OfTenant, owner_of, sender_for
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.base import Name
from shared.contracts.registry import Bearer
from shared.contracts.secrets import SIGNING
from shared.contracts.updates import UpdateWebhook
from shared.contracts.webhooks import (
    SECRET_BYTES,
    SECRET_PREFIX,
    CreateWebhook,
    DeleteWebhook,
    SendTestEvent,
    WebhookCreated,
    WebhookSettings,
)

NEW_SECRET_BYTES = 32
FIGURES = (
    "waiting",
    "delivered",
    "given_up",
    "dropped",
    "failing_since",
    "disabled_at",
    "last_at",
    "last_error",
    "tested_at",
    "test_result",
)
DELIVERIES = """
SELECT tenant, target, created_at, delivered, given_up, dropped, failing_since, disabled_at,
    last_at, last_error, tested_at, test_result, (SELECT count(*) FROM notification n
    WHERE n.tenant = t.tenant AND n.target = t.target) AS waiting
FROM notification_target t
WHERE ($1::text IS NULL OR tenant = $1) AND NOT starts_with(target, 'mail:')
"""

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])

Webhook = Annotated[Name, Path(description="name of the webhook")]


class CreateWebhookRequest(WebhookSettings):
    """A webhook of the tenant, with its signing secret if the sender has made it."""

    secret: str | None = Field(
        None,
        max_length=128,
        description="signs each request: `whsec_` and 24 to 64 bytes in base64; null: a new one "
        "is made; private",
    )

    @field_validator("secret")
    @classmethod
    def _is_a_signing_secret(cls, secret: str | None) -> str | None:
        fewest, most = SECRET_BYTES
        if secret is None or _is_signing_secret(secret):
            return secret
        raise ValueError(f"must be {SECRET_PREFIX} and {fewest} to {most} bytes in base64")


def _is_signing_secret(text: str) -> bool:
    fewest, most = SECRET_BYTES
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        return False
    return text.startswith(SECRET_PREFIX) and fewest <= len(key) <= most


@router.post("", **command_route(CreateWebhookRequest, 409, receipt=answers.WebhookReceipt))
async def create_webhook(request: Request, tenant: OfTenant = None) -> Response:
    """Create a webhook: state changes of the tenant's jobs from now on are posted to it.

    `secret` signs each request as Standard Webhooks does, and is kept encrypted. A new one is shown
    once; one that the request has is not repeated.
    """
    gateway, bearer = gateway_of(request), await authorize(request, "submitter")
    owner = sender_for(gateway.access, bearer, owner_of(bearer, tenant)).tenant
    body = parse_body(CreateWebhookRequest, await json_body(request))
    require_finished(gateway.access.view, "a webhook", "the topic of events has all state changes")
    charge_change(gateway, bearer)
    secret = body.secret or _new_secret()

    async def sealed() -> CreateWebhook:
        view, name = gateway.access.view, SIGNING + body.name
        stored = await gateway.sealing.store(view, owner, name, secret, bearer.principal)
        return CreateWebhook(
            **body.model_dump(exclude={"secret"}),
            tenant=owner,
            version=stored.version,
            sealed=stored.sealed,
            created_by=bearer.principal,
        )

    _, receipt = await store_sealed(request, gateway, bearer, owner, sealed)
    shown = None if body.secret else secret
    return accepted_response(
        answers.WebhookReceipt(**receipt, tenant=owner, name=body.name, secret=shown)
    )


def _new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(NEW_SECRET_BYTES)).decode()


@router.get("", **read_route(answers.Page[answers.Webhook], 422))
async def list_webhooks(
    request: Request, tenant: OfTenant = None, after: PageToken = None, limit: Limit = 1000
) -> Response:
    """List webhooks and what became of what was sent to each; never secrets."""
    gateway, bearer = gateway_of(request), await authorize(request, "viewer")
    shown = owner_of(bearer, tenant)
    check_tenant(gateway, shown)
    rows = await gateway.database.rows(bearer, DELIVERIES, shown)
    figures = {(row["tenant"], row["target"], row["created_at"]): row for row in rows}
    hooks = {
        f"{hook.tenant}/{hook.name}": hook
        for hook in gateway.access.view.webhooks
        if shown in (None, hook.tenant)
    }

    def row_of(hook: WebhookCreated) -> Row:
        return _row_of(hook, figures.get((hook.tenant, hook.name, hook.created_at), {}))

    return json_response(page_of_entries(hooks, row_of, after, limit, "id"))


@router.patch("/{name}", **command_route(UpdateWebhook, 404, 409))
async def update_webhook(request: Request, name: Webhook, tenant: OfTenant = None) -> Response:
    """Change the named settings of a webhook and keep the others; null is the default.

    What waits is sent to the new address. The signing secret and the figures stay.
    """
    gateway, bearer, owner = await _sender(request, tenant)
    _, command = await update_request(request, UpdateWebhook, "submitter", tenant=owner, name=name)
    await _require(gateway, owner, name)
    require_finished(gateway.access.view, "a change of a webhook", "delete it and create it anew")
    return accepted_response(await decided(request, bearer, command))


@router.delete("/{name}", **command_route(None, 400, 404, 409, 413, 415, 422))
async def delete_webhook(request: Request, name: Webhook, tenant: OfTenant = None) -> Response:
    """Delete a webhook and its secret; what waits to be sent to it is dropped."""
    gateway, bearer, owner = await _sender(request, tenant)
    await _require(gateway, owner, name)
    command = DeleteWebhook(tenant=owner, name=name)
    return accepted_response(await decided(request, bearer, command))


@router.post("/{name}/test", **command_route(None, 400, 404, 409, 413, 415, 422))
async def send_test_event(request: Request, name: Webhook, tenant: OfTenant = None) -> Response:
    """Send the event `webhook.tested.v1` to a webhook, once; `test_result` has what came of it.

    A webhook that was disabled works again once it has taken one.
    """
    gateway, bearer, owner = await _sender(request, tenant)
    await _require(gateway, owner, name)
    command = SendTestEvent(tenant=owner, name=name)
    return accepted_response(await decided(request, bearer, command))


async def _sender(request: Request, tenant: str | None) -> tuple[Gateway, Bearer, str]:
    gateway, bearer = gateway_of(request), await authorize(request, "submitter")
    owner = require_owner(owner_of(bearer, tenant), TENANT_REQUIRED)
    charge_change(gateway, bearer)
    return gateway, bearer, owner


async def _require(gateway: Gateway, tenant: str, name: str) -> None:
    """Raise ApiError 404 for a webhook that the tenant does not have, also not since a moment."""
    if gateway.access.view.webhooks.get(tenant, name) is None:
        await gateway.access.catch_up()
    if gateway.access.view.webhooks.get(tenant, name) is None:
        raise not_found("webhook")


def _row_of(hook: WebhookCreated, figures: Row) -> Row:
    texts = ("last_error", "test_result")
    return {
        "id": f"{hook.tenant}/{hook.name}",
        **hook.model_dump(mode="json"),
        **{name: figures.get(name, "" if name in texts else 0) for name in FIGURES},
    }
