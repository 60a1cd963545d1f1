"""Input that no reader can understand."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Event, event


@event
class InputRejected(Event):
    """A record of an input topic is no message; `dead` holds its bytes."""

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
    topic: str = Field(description="where it lies")
    partition: int = Field(ge=0, description="where it lies")
    offset: int = Field(ge=0, description="where it lies")
    reason: str = Field(description="field, value and rule")
    sha256: str = Field(description="of the bytes")
    tenant: str = Field("", description="whose submission it was, where that is known")
