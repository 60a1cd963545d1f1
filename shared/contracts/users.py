"""Users of tenants, to which jobs belong: commands and events of access."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Command, Event, Name, command, event
from shared.contracts.bounds import UserBounds

MAX_USERS = 10_000
"""Users per tenant: each lane keeps the bounds of all."""


@command
class RegisterUser(UserBounds, Command):
    """Register a user of a tenant: its name is that of its keys and tokens alone."""

    TYPE: ClassVar[str] = "user.register.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    user: Name = Field(description="person or robot")


@command
class DeleteUser(Command):
    """Delete a user with its keys and its address; its jobs go on."""

    TYPE: ClassVar[str] = "user.delete.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    user: Name = Field(description="the user")


@event
class UserRegistered(Event):
    """The tenant has a user with these bounds from now on."""

    TYPE: ClassVar[str] = "user.registered.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "user"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    user: Name = Field(description="person or robot")
    bounds: UserBounds = Field(description="bounds of its submissions")


@event
class UserDeleted(Event):
    """The tenant has no user of that name any more."""

    TYPE: ClassVar[str] = "user.deleted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "user"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    user: Name = Field(description="the user")
