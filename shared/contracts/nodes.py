"""Nodes: their inventory, and the commands of operators."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Command, Event, Name, Text, command, event

Backend = Literal["virtual", "process", "agent"]


@command
class CordonNode(Command):
    """Cordon a node: no more workers start on it."""

    TYPE: ClassVar[str] = "node.cordon.v1"
    OWNER: ClassVar[str] = "placement"
    node_id: Name = Field(description="the node")
    reason: Text = Field("", description="free text for the audit")


@command
class UncordonNode(Command):
    """Make a cordoned or drained node schedulable again."""

    TYPE: ClassVar[str] = "node.uncordon.v1"
    OWNER: ClassVar[str] = "placement"
    node_id: Name = Field(description="the node")


@command
class DrainNode(Command):
    """Cordon a node and evict its jobs: each is stopped with its grace period and waits again."""

    TYPE: ClassVar[str] = "node.drain.v1"
    OWNER: ClassVar[str] = "placement"
    node_id: Name = Field(description="the node")
    reason: Text = Field("", description="free text for the audit")


@event
class NodeJoined(Event):
    """A node joined with its GPUs; a new incarnation replaces the old one."""

    TYPE: ClassVar[str] = "node.joined.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="id that is new at each start of its executor")
    executor_id: str = Field(description="the executor process of the node")
    backend: Backend = Field(description="how its workers run")
    gpu_type: Name = Field(description="its GPU type")
    gpus: int = Field(ge=0, le=64, description="its GPUs, in devices")
    cpus: float = Field(ge=0, description="its CPU cores")
    mem_gib: float = Field(ge=0, description="its memory, GiB")
    rack: str = Field("", description="its rack")
    labels: dict[str, str] = Field(
        default_factory=dict, description="labels that node selectors match"
    )


@event
class NodeLost(Event):
    """A node is lost; its allocations are released only when its lease has expired."""

    TYPE: ClassVar[str] = "node.lost.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="the incarnation that is lost")
    reason: Literal["silent", "left", "replaced"] = Field(description="machine-readable")
    silent_s: float = Field(0.0, ge=0, description="wall s without a heartbeat")


@event
class NodeCordoned(Event):
    """No more workers start on the node."""

    TYPE: ClassVar[str] = "node.cordoned.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    draining: bool = Field(False, description="its jobs are evicted too")
    reason: str = Field("", description="reason as given in the command")


@event
class NodeUncordoned(Event):
    """The node is schedulable again."""

    TYPE: ClassVar[str] = "node.uncordoned.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")


@event
class NodeHealthNoted(Event):
    """Placement recorded the slowdown of a node that fail-slow reported."""

    TYPE: ClassVar[str] = "node.health-noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    PUBLIC: ClassVar[bool] = False
    node_id: Name = Field(description="the node")
    fault_id: str = Field(description="the suspicion that changed it")
    slowdown: float = Field(ge=1, description="iteration time over its peers'; 1: none any more")
    health: float = Field(gt=0, le=1, description="health of the node from now on; 1 is healthy")
    until: int | None = Field(
        None, description="ms, when it expires; absent: while it is suspected"
    )
