"""Webhooks of tenants: commands and events of access, and the names under which secrets are kept.

The signing secret of a webhook and the mail address of a user are secrets of the tenant under
reserved names: they are encrypted, brought under other keys and deleted as all secrets are.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import Field

from shared.contracts.base import Command, Event, Model, Name, command, event
from shared.contracts.secrets import Principal, SealedValue
from shared.contracts.state_changes import StateChange

MAX_WEBHOOKS: Final = 20
"""Most webhooks of a tenant."""
SECRET_PREFIX: Final = "whsec_"
"""Begins a signing secret, before base64, by Standard Webhooks."""
SECRET_BYTES: Final = (24, 64)
"""Fewest and most bytes of a signing secret, by Standard Webhooks."""
URL: Final = (
    r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?"
    r"([/?][\x21\x22\x24-\x7e]*)?$"
)
"""An address without user, fragment, space or control character."""
WebhookUrl = Annotated[str, Field(max_length=2048, pattern=URL)]


class WebhookSettings(Model):
    """The address of a webhook, and the state changes that are sent to it."""

    name: Name = Field(description="the webhook")
    url: WebhookUrl = Field(description="address that gets a POST for each state change")
    events: tuple[StateChange, ...] = Field(
        min_length=1, max_length=8, description="state changes of jobs that are sent"
    )
    pools: tuple[Name, ...] = Field(
        (), max_length=64, description="pools of the jobs; empty: every pool"
    )


@command
class CreateWebhook(WebhookSettings, Command):
    """Create a webhook of a tenant; the gateway has encrypted its signing secret."""

    TYPE: ClassVar[str] = "webhook.create.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    version: int = Field(ge=1, description="one above the latest version of the tenant's secrets")
    sealed: SealedValue = Field(description="the encrypted signing secret")
    created_by: Principal = Field(description="key or token of the sender")


@command
class DeleteWebhook(Command):
    """Delete a webhook and its signing secret; what waits to be sent is dropped."""

    TYPE: ClassVar[str] = "webhook.delete.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    name: Name = Field(description="the webhook")


@command
class SendTestEvent(Command):
    """Send one event to a webhook now."""

    TYPE: ClassVar[str] = "webhook.test.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    name: Name = Field(description="the webhook")


@event
class WebhookCreated(WebhookSettings, Event):
    """State changes from now on are sent to the webhook."""

    TYPE: ClassVar[str] = "webhook.created.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "name"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    created_by: Principal = Field(description="key or token that created it")
    created_at: int = Field(ge=0, description="ms, when it was created")


@event
class WebhookChanged(WebhookSettings, Event):
    """The webhook has these settings from now on, for what waits to be sent too."""

    TYPE: ClassVar[str] = "webhook.changed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "name"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    changed_at: int = Field(ge=0, description="ms, when it was changed")


@event
class WebhookDeleted(Event):
    """The tenant has no webhook of that name any more."""

    TYPE: ClassVar[str] = "webhook.deleted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "name"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    name: Name = Field(description="the webhook")


@event
class WebhookTested(Event):
    """A test of the webhook was requested: this event is sent to it."""

    TYPE: ClassVar[str] = "webhook.tested.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "name"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    name: Name = Field(description="the webhook")
