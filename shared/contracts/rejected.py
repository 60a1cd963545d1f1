"""The event for input that cannot be decoded."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Event, event


@event
class InputRejected(Event):
    """A record of an input topic is not a valid message; the topic `dead` holds its bytes."""

    TYPE: ClassVar[str] = "input.rejected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = (
        "access",
        "admission",
        "priority",
        "placement",
        "failslow",
        "throttle",
    )
    SUBJECT: ClassVar[str] = "topic"
    topic: str = Field(description="topic of the record")
    partition: int = Field(ge=0, description="partition of the record")
    offset: int = Field(ge=0, description="offset of the record")
    reason: str = Field(description="field, value and violated rule")
    sha256: str = Field(description="sha256 of the bytes")
    tenant: str = Field("", description="tenant of a submission; empty: unknown")
