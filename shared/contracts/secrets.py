"""Secrets of tenants, as ciphertext: commands and events of access.

Only the gateway, which encrypts, and executors, which decrypt for the node that runs a job, have
the keys. Tenant, name and version are part of what is authenticated: see
`shared/secrets/secret_box.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field

from shared.contracts.base import Command, Event, Model, Name, command, event

REFERENCE: Final = "secret://"
"""Begins a variable's value that is the name of a secret."""
SECRET_NAME: Final = re.compile(r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$")
"""A whole `SecretName`, for `fullmatch`."""
NAME_RULE: Final = "1 to 128 letters, digits and ._- are allowed, and no dot at the beginning"
MAX_VALUE_BYTES: Final = 32 * 1024
"""Longest value of a secret; the kernel takes variables of up to 128 KiB."""
MAX_SECRETS: Final = 256
"""Most secrets of a tenant."""
MAX_SEALED_CHARS: Final = 1_500_000
"""Most characters of ciphertext of a tenant, a mebibyte of values."""
RESERVED: Final = "berth."
"""Begins the names of secrets that Berth itself keeps for a tenant: jobs cannot name them."""
SIGNING: Final = f"{RESERVED}webhook."
"""Begins the name of the signing secret of a webhook."""
MAIL: Final = f"{RESERVED}mail."
"""Begins the name of the secret that is the mail address of a user."""
MAX_ADDRESSES: Final = 2048
"""Most mail addresses of users of a tenant."""

SecretName = Annotated[str, Field(pattern=SECRET_NAME.pattern)]
KeyId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+={0,2}$")]
Principal = Annotated[str, Field(max_length=160)]


class WrappedKey(Model):
    """The data key of one secret, encrypted under a key of the installation."""

    key_id: KeyId = Field(description="key of the installation that encrypts the data key")
    data: Base64 = Field(max_length=1024, description="the encrypted data key")


class SealedValue(Model):
    """A value, encrypted under a data key of its own."""

    key: WrappedKey = Field(description="the data key")
    data: Base64 = Field(max_length=45_000, description="nonce and ciphertext")


@command
class StoreSecret(Command):
    """Store a secret of a tenant; the gateway has encrypted its value."""

    TYPE: ClassVar[str] = "secret.store.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    name: SecretName = Field(description="the secret")
    version: int = Field(ge=1, description="one above the tenant's latest version")
    sealed: SealedValue = Field(description="the encrypted value")
    set_by: Principal = Field(description="key or token of the sender")


@command
class RewrapSecret(Command):
    """Encrypt the data key of a secret under another key; its value stays."""

    TYPE: ClassVar[str] = "secret.rewrap.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    name: SecretName = Field(description="the secret")
    version: int = Field(ge=1, description="its present version")
    key: WrappedKey = Field(description="the data key under the new key")


@command
class DeleteSecret(Command):
    """Delete a secret: jobs that name it start no more."""

    TYPE: ClassVar[str] = "secret.delete.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    name: SecretName = Field(description="the secret")


@event
class SecretStored(Event):
    """Jobs of the tenant that name the secret get this value from now on."""

    TYPE: ClassVar[str] = "secret.stored.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "name"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    name: SecretName = Field(description="the secret")
    version: int = Field(ge=1, description="higher than all before of the tenant's secrets")
    sealed: SealedValue = Field(description="the encrypted value")
    set_by: Principal = Field(description="key or token that set it")
    set_at: int = Field(ge=0, description="ms, when it was set")


@event
class SecretRewrapped(Event):
    """The data key of a secret is encrypted under another key."""

    TYPE: ClassVar[str] = "secret.rewrapped.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "name"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    name: SecretName = Field(description="the secret")
    version: int = Field(ge=1, description="its version, as before")
    key: WrappedKey = Field(description="the data key under the new key")


@event
class SecretDeleted(Event):
    """The tenant has no secret of that name any more."""

    TYPE: ClassVar[str] = "secret.deleted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "name"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    name: SecretName = Field(description="the secret")


def is_reserved(name: str) -> bool:
    """Return whether a secret is one that Berth itself keeps."""
    return name.startswith(RESERVED)


def secrets_named(env: Mapping[str, str]) -> dict[str, str]:
    """Return the name of the secret by each variable that is one; it may be none at all."""
    return {
        variable: value.removeprefix(REFERENCE)
        for variable, value in env.items()
        if value.startswith(REFERENCE)
    }
