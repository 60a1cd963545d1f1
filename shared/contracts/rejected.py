"""Events for inputs that cannot be decoded, or on which a decider raises."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts import topics
from shared.contracts.base import Event, event


@event
class InputRejected(Event):
    """A record of an input topic is not a valid message; the topic `dead` holds its bytes."""

    TYPE: ClassVar[str] = "input.rejected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = topics.LEDGERS
    SUBJECT: ClassVar[str] = "topic"
    topic: str = Field(description="topic of the record")
    partition: int = Field(ge=0, description="partition of the record")
    offset: int = Field(ge=0, description="offset of the record")
    reason: str = Field(description="field, value and violated rule")
    sha256: str = Field(description="sha256 of the bytes")
    tenant: str = Field("", description="tenant of a submission; empty: unknown")


@event
class InputQuarantined(Event):
    """A decider raised an error on an input, which is quarantined until an operator decides on it.

    The id of this event names the input: `berth dead retry` and `skip` take it. Of a record with
    several facts or reports each that raises has an event of its own, with its own bytes.
    """

    TYPE: ClassVar[str] = "input.quarantined.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = topics.LEDGERS
    SUBJECT: ClassVar[str] = "topic"
    PUBLIC: ClassVar[bool] = False
    topic: str = Field(description="topic of the record; `local`: an input of the service itself")
    partition: int = Field(ge=0, description="partition of the record")
    offset: int = Field(ge=-1, description="offset of the record; -1 for a local input")
    message_id: str = Field("", description="id of its message, of the first if it has several")
    message_type: str = Field("", description="wire name of that message, if it has one")
    reason: str = Field(description="class and text of the error, without private values")
    place: str = Field("", description="file, line and function that raised it")
    sha256: str = Field(
        description="sha256 of the bytes, of the one fact or report; empty for a local input"
    )
    tenant: str = Field("", description="tenant of the message; empty: unknown")


@event
class InputRetryRequested(Event):
    """An operator requests that a quarantined input is decided again; its lane reads this."""

    TYPE: ClassVar[str] = "input.retry-requested.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "input_id"
    PUBLIC: ClassVar[bool] = False
    input_id: str = Field(description="id of its InputQuarantined")


@event
class InputSkipped(Event):
    """An operator has closed a quarantined input: it is never decided."""

    TYPE: ClassVar[str] = "input.skipped.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "input_id"
    PUBLIC: ClassVar[bool] = False
    input_id: str = Field(description="id of its InputQuarantined")
    reason: str = Field(description="free text for the audit")


@event
class InputRetried(Event):
    """A quarantined input was given to its decider again; its events come before this."""

    TYPE: ClassVar[str] = "input.retried.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = topics.LEDGERS
    SUBJECT: ClassVar[str] = "input_id"
    PUBLIC: ClassVar[bool] = False
    input_id: str = Field(description="id of its InputQuarantined")
    outcome: Literal["decided", "raised", "not_retained"] = Field(
        description="`raised`: is quarantined anew; `not_retained`: bytes are gone"
    )
