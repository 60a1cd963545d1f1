"""Faults that operators inject on purpose, for drills: a node is slow, stopped, or badly linked."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Command, Event, Name, Text, command, event

InjectedKind = Literal["slow", "stop", "flap", "link"]
"""`slow`: work there takes `factor` times as long; `stop`: it stands still; `flap`: it is slow and
well in turns of 10 s; `link`: communication with the node takes `factor` times as long."""
EndCause = Literal["over", "ended", "replaced", "node_lost", "not_allowed"]
MAX_FACTOR = 100.0
MAX_INJECTION_S = 3600.0
FLAP_S = 10.0


@command
class InjectFault(Command):
    """Inject a fault on a node for a while; it replaces one that the node has already."""

    TYPE: ClassVar[str] = "fault.inject.v1"
    OWNER: ClassVar[str] = "placement"
    node_id: Name = Field(description="the node")
    fault: InjectedKind = Field(description="the fault")
    factor: float = Field(2.0, gt=1, le=MAX_FACTOR, description="multiple of time; not of `stop`")
    for_s: float = Field(gt=0, le=MAX_INJECTION_S, description="wall s until it ends by itself")
    reason: Text = Field("", description="free text for the audit")


@command
class EndInjection(Command):
    """End the injected fault of a node before its time."""

    TYPE: ClassVar[str] = "fault.end-injection.v1"
    OWNER: ClassVar[str] = "placement"
    node_id: Name = Field(description="the node")
    reason: Text = Field("", description="free text for the audit")


@event
class FaultInjected(Event):
    """A fault is injected on a node, for a drill."""

    TYPE: ClassVar[str] = "fault.injected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    fault: InjectedKind = Field(description="the fault")
    factor: float = Field(description="multiple of time; not of `stop`")
    until: int = Field(ge=0, description="ms, when it ends by itself")
    reason: str = Field("", description="as given")


@event
class InjectionEnded(Event):
    """The fault that was injected on a node is over."""

    TYPE: ClassVar[str] = "fault.injection-ended.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    fault: InjectedKind = Field(description="the fault")
    cause: EndCause = Field(
        description="its time is over, an operator ended or replaced it, the node was lost, or the "
        "pool allows none any more"
    )
    reason: str = Field("", description="as given")
