"""Nodes, and what operators may do to them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Command, Event, Name, Text, command, event

Backend = Literal["virtual", "process"]


@command
class CordonNode(Command):
    """Start nothing more on a node."""

    TYPE: ClassVar[str] = "node.cordon.v1"
    OWNER: ClassVar[str] = "placement"
    node_id: Name = Field(description="the node")
    reason: Text = Field("", description="for the record")


@command
class UncordonNode(Command):
    """Use a cordoned or drained node again."""

    TYPE: ClassVar[str] = "node.uncordon.v1"
    OWNER: ClassVar[str] = "placement"
    node_id: Name = Field(description="the node")


@command
class DrainNode(Command):
    """Cordon a node and move its jobs away: each is stopped with its grace and waits again."""

    TYPE: ClassVar[str] = "node.drain.v1"
    OWNER: ClassVar[str] = "placement"
    node_id: Name = Field(description="the node")
    reason: Text = Field("", description="for the record")


@event
class NodeJoined(Event):
    """A node offers its GPUs; a new incarnation replaces the old one."""

    TYPE: ClassVar[str] = "node.joined.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="new at each start of its executor")
    executor_id: str = Field(description="the process that serves it")
    backend: Backend = Field(description="how workers run there")
    gpu_type: Name = Field(description="its GPU type")
    gpus: int = Field(ge=0, le=64, description="its GPUs, in devices")
    cpus: float = Field(ge=0, description="its cores")
    mem_gib: float = Field(ge=0, description="its memory, GiB")
    rack: str = Field("", description="its rack")
    labels: dict[str, str] = Field(default_factory=dict, description="what selectors match")


@event
class NodeLost(Event):
    """A node is gone; what it held is free only once its lease is over."""

    TYPE: ClassVar[str] = "node.lost.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="the one that is gone")
    reason: Literal["silent", "left", "replaced"] = Field(description="why")
    silent_s: float = Field(0.0, ge=0, description="wall s without a heartbeat")


@event
class NodeCordoned(Event):
    """Nothing more starts there."""

    TYPE: ClassVar[str] = "node.cordoned.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    draining: bool = Field(False, description="its jobs are moved away too")
    reason: str = Field("", description="as given")


@event
class NodeUncordoned(Event):
    """The node is used again."""

    TYPE: ClassVar[str] = "node.uncordoned.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")


@event
class NodeHealthNoted(Event):
    """Placement took note of how slow fail-slow takes a node to be."""

    TYPE: ClassVar[str] = "node.health-noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    PUBLIC: ClassVar[bool] = False
    node_id: Name = Field(description="the node")
    fault_id: str = Field(description="the suspicion that this follows from")
    slowdown: float = Field(ge=1, description="iteration time over its peers'; 1: no longer so")
    health: float = Field(gt=0, le=1, description="of the node from now on; 1 is healthy")
    until: int | None = Field(None, description="ms: forgotten then; absent: while it is suspected")
