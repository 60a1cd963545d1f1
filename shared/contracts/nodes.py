"""Nodes: their inventory, and the commands of operators."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Command, Event, Name, Text, command, event

Backend = Literal["virtual", "process", "agent", "slurm", "kubernetes", "ray"]
"""How a node runs its workers: on a clock alone, as processes of an executor of an earlier release
(`process`, only in old records), or by an agent."""
Fencing = Literal["kernel", "advice"]
"""The end of a worker whose step died: the kernel kills it, or a sweep by the agent."""

STILL_CORDONED = "still cordoned"
"""Reason of a cordon that goes on over a join: the first reason of it says more."""


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


@command
class DeclareNodeLost(Command):
    """Give a node up: nothing is placed there, its jobs stop, its agent is fenced.

    Its GPUs are released by reports or by silence, as ever; `powered_off` says that a person has
    made sure that the machine is off, and releases them at once.
    """

    TYPE: ClassVar[str] = "node.declare-lost.v1"
    OWNER: ClassVar[str] = "placement"
    node_id: Name = Field(description="the node")
    powered_off: bool = Field(False, description="the machine is off: nothing runs on it")
    reason: Text = Field("", description="free text for the audit")


@event
class NodeJoined(Event):
    """A node joined with its GPUs; a new incarnation replaces the old one."""

    TYPE: ClassVar[str] = "node.joined.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="uuid of this life of the node")
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
    generation: int = Field(
        0, ge=0, description="higher than that of every earlier incarnation; 0: not counted"
    )
    boot_id: str = Field("", description="id of the machine's boot")
    pid_namespace: str = Field("", description="id of the pid namespace of its workers")
    hardware: str = Field("", description="hash of the machine's identity; empty: unknown")
    unusable_gpus: tuple[int, ...] = Field((), description="GPUs that are not offered")
    terms_id: str = Field("", description="terms of its lease; empty: those of the pool")
    fencing: Fencing = Field("kernel", description="who ends a worker whose step died")
    limits: str = Field("", description="cgroup version that enforces limits; empty: none")


@event
class NodeHeldBack(Event):
    """A registration waits: the name belongs to a machine whose workers may still live.

    It joins once the older incarnation holds nothing any more, or is replaced by a later one.
    """

    TYPE: ClassVar[str] = "node.held-back.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    reason: Literal["machine_changed"] = Field(description="machine-readable")
    registration: NodeJoined = Field(description="the node as it will join")


@event
class NodeSuspected(Event):
    """A node sends no heartbeats: nothing new is placed there, nothing is stopped.

    It is repeated while the silence lasts, so that a restart of placement does not begin to count
    anew: the next reader goes on from `silent_ms` and reads from `offset`.
    """

    TYPE: ClassVar[str] = "node.suspected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="the incarnation that is silent")
    silent_ms: int = Field(ge=0, description="ms without a heartbeat")
    offset: int = Field(ge=0, description="next offset of `heartbeats` that was not read yet")
    lost_after_ms: int | None = Field(
        None, description="ms of silence at which it is lost; absent: never, its workers are kept"
    )


@event
class NodeHeard(Event):
    """A suspected node sent a heartbeat."""

    TYPE: ClassVar[str] = "node.heard.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="the incarnation that was heard")


@event
class NodeTermsApplied(Event):
    """No deadline of older terms lies ahead on the node any more."""

    TYPE: ClassVar[str] = "node.terms-applied.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    PUBLIC: ClassVar[bool] = False
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="the incarnation that applied them")
    terms_id: str = Field(description="the terms")


@event
class WorkerStuckNoted(Event):
    """A killed worker does not die; its GPUs stay held until it is gone or its node is lost."""

    TYPE: ClassVar[str] = "worker.stuck-noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: str = Field(description="job of the worker")
    tenant: str = Field("", description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    allocation_id: str = Field(description="`partition/seq/index/rank`")
    node_id: str = Field(description="the node")
    detail: str = Field("", description="what still lives")


@event
class NodeLost(Event):
    """A node is lost: its jobs stop. Its GPUs are free when reports or its silence prove it.

    A `declared` or `left` node that then falls silent is lost a second time, as `silent`.
    """

    TYPE: ClassVar[str] = "node.lost.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(description="the incarnation that is lost")
    reason: Literal["silent", "left", "replaced", "declared"] = Field(
        description="machine-readable"
    )
    silent_s: float = Field(0.0, ge=0, description="wall s without a heartbeat")
    powered_off: bool = Field(
        False, description="an operator made sure that the machine is off; `declared` only"
    )
    heard: bool = Field(
        False,
        description="heartbeats came until then: its agent ends all of its workers and joins anew; "
        "`declared` only, where it was not powered off",
    )
    detail: str = Field("", description="reason as given by the operator; `declared` only")


@event
class NodeCordoned(Event):
    """No more workers start on the node."""

    TYPE: ClassVar[str] = "node.cordoned.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")
    draining: bool = Field(False, description="its jobs are evicted too")
    reason: str = Field("", description="reason as given in the command, or by the node itself")
    until_joined: bool = Field(False, description="lifted when the node joins anew")
    fault_ids: tuple[str, ...] = Field(
        (),
        description="suspicions of fail-slow that led to it, lifted when one is dismissed; or a "
        "problem of its GPUs, lifted when none is left",
    )


@event
class NodeUncordoned(Event):
    """The node is schedulable again."""

    TYPE: ClassVar[str] = "node.uncordoned.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: Name = Field(description="the node")


TENANTS_FROM = 1
"""First release that reads whose suspicion a node's health follows from."""


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
    gpu: int | None = Field(None, ge=0, description="the GPU that is slow, if one is")
    tenant: str = Field(
        "", description="tenant whose job reported it and has ended; empty: not known, or none"
    )
