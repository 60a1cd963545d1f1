"""The answers to commands, in the ledger of the service that decided."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Event, event


@event
class CommandAccepted(Event):
    """The answer to an accepted command."""

    TYPE: ClassVar[str] = "command.accepted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = (
        "access",
        "admission",
        "placement",
        "failslow",
        "throttle",
    )
    SUBJECT: ClassVar[str] = "command_id"
    command_id: str = Field(description="CloudEvent id of the command")
    command_type: str = Field(description="its wire name")
    of: str = Field("", description="subject of the command: a job, node, tenant")
    tenant: str = Field("", description="tenant that sent it")
    principal: str | None = Field(None, description="key or token of the sender; private")
    duplicate: bool = Field(False, description="an equal command was accepted before")


@event
class CommandRefused(Event):
    """The answer to a refused command, with the reason."""

    TYPE: ClassVar[str] = "command.refused.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = (
        "access",
        "admission",
        "placement",
        "failslow",
        "throttle",
    )
    SUBJECT: ClassVar[str] = "command_id"
    command_id: str = Field(description="CloudEvent id of the command")
    command_type: str = Field(description="its wire name")
    of: str = Field("", description="subject of the command")
    tenant: str = Field("", description="tenant that sent it")
    principal: str | None = Field(None, description="key or token of the sender; private")
    reason: str = Field(description="machine-readable: snake_case")
    detail: str = Field("", description="field, value and violated rule, for people")
