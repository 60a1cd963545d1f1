"""Receipts of commands, and what was decided about them."""

from __future__ import annotations

from typing_extensions import TypedDict

from berth_client.answers.estimates import StartInterval


class CommandReceipt(TypedDict):
    """Receipt of a command that the broker has acknowledged; the owning service decides later."""

    command_id: str
    """`GET /v1/commands/{command_id}` returns the decision."""
    trace_id: str
    """Trace that begins with this request."""


class SubmissionReceipt(CommandReceipt):
    """Receipt of a submission that the broker has acknowledged; admission decides later."""

    job_id: str
    """The job, or the common stem of an array's jobs."""
    job_ids: list[str]
    """All jobs, in the order of the array."""
    idempotency_key: str
    """Key as sent, or generated."""
    pool: str
    """Pool of the job."""
    start: StartInterval | None
    """When the tenant's last waiting job of this size will start; null: none waits, or its start is
    not estimated yet."""


class KeyReceipt(CommandReceipt):
    """A new API key. It is shown once: only its hash is stored."""

    key_id: str
    """Public part of the key."""
    key: str
    """`key_id.secret` for the Authorization header."""


class NodeTokenReceipt(CommandReceipt):
    """A new join token. It is shown once: only its hash is stored."""

    token_id: str
    """Public part of the token."""
    token: str
    """`token_id.secret` for `berth-agent join`."""


class BundleReceipt(TypedDict):
    """A bundle that is stored, or which parts have to be stored before it."""

    bundle: str
    """Its name, for the field `bundle` of a job."""
    tenant: str
    """Tenant whose jobs can name it."""
    missing: list[str]
    """SHA-256 of the parts to send, and then the bundle again; empty: it is stored."""


class BundlePartReceipt(TypedDict):
    """A part of a bundle that is stored."""

    sha256: str
    size_bytes: int


class SecretReceipt(CommandReceipt):
    """Receipt of a secret that is stored."""

    tenant: str
    name: str
    version: int
    """It grows with every change of the tenant's secrets."""


class WebhookReceipt(CommandReceipt):
    """A new webhook. A secret that was made for it is shown once."""

    tenant: str
    name: str
    secret: str | None
    """Signs each request, by Standard Webhooks: `whsec_` and base64; null: the sender gave it."""


class CommandAnswer(TypedDict):
    """The decision about a command."""

    command_id: str
    ledger: str
    """Service that decided."""
    type: str
    """Type of the command."""
    of: str
    """Its subject: a job, a node, a tenant."""
    tenant: str
    accepted: bool
    duplicate: bool
    """It had been decided before: a repetition has no effect."""
    reason: str
    """Why it was refused, a code in snake_case; empty: accepted."""
    detail: str
    at: int
    """When it was decided."""
