"""Mitigation of slow workers: plans, their approval, and the health of nodes."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Command, Event, Model, Text, command, event
from shared.contracts.parallelism import AdaptedSchedule

LevelName = Literal[
    "nothing", "redistribute", "adapt_schedule", "rearrange", "validate", "migrate", "restart"
]
"""`validate` measures the nodes of a job; no earlier release reads it, so none is planned before
`berth upgrade finish`."""
RESTARTS_FROM = 1
"""First release that restarts a job by a plan."""
EXPECTED_FROM = 1
"""First release that says which plan is due next."""
GPU_HEALTH_FROM = 1
"""First release that scores single GPUs."""
TURNED_DOWN_FROM = 1
"""First release in which placement says which plans it does not carry out."""
Actor = Literal["framework", "berth"]
TurnedDownReason = Literal[
    "no_room", "not_running", "not_there", "no_checkpoints", "node_cordoned", "over"
]


DeclinedReason = Literal["planned", "no_help", "no_gain", "too_dear", "not_offered"]


@command
class ApproveMitigation(Command):
    """Approve a plan: Berth carries it out, or the training framework is known to do so."""

    TYPE: ClassVar[str] = "mitigation.approve.v1"
    OWNER: ClassVar[str] = "failslow"
    plan_id: str = Field(max_length=128, description="the plan")
    reason: Text = Field("", description="free text for the audit")


@event
class MitigationPlanned(Event):
    """The loss of a gang justifies a level of mitigation, as the pool's `mitigation` says."""

    TYPE: ClassVar[str] = "mitigation.planned.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "plan_id"
    plan_id: str = Field(description="`job/attempt/level/count`")
    job_id: str = Field(description="the job that is slowed down")
    tenant: str = Field("", description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    level: LevelName = Field(description="the level to apply")
    actor: Actor = Field(description="program that can apply it")
    node_ids: tuple[str, ...] = Field(description="nodes of the slow workers that it helps")
    fault_ids: tuple[str, ...] = Field(description="faults that it helps")
    expected_gain_s: float = Field(description="expected saving, cluster s")
    cost_s: float = Field(ge=0, description="time that it is expected to stop the job, cluster s")
    accumulated_loss_s: float = Field(ge=0, description="loss since the first fault, cluster s")
    remaining: float = Field(ge=0, description="expected slowdown after it, 0.25 for 1.25 times")
    rule: str = Field(description="break even, observed durations or overdue")
    evidence: tuple[str, ...] = Field((), description="sentences with figures")
    microbatches: tuple[int, ...] = Field(
        (), description="of `redistribute`: micro-batches of each data-parallel group, if known"
    )
    schedule: AdaptedSchedule | None = Field(None, description="of `adapt_schedule`")


class DeclinedLevel(Model):
    """A level that is not planned, and the reason."""

    level: LevelName = Field(description="the level")
    reason: DeclinedReason = Field(
        description="`planned` already; `no_help` against a fault of this cause; `no_gain`: it "
        "would leave no less; `too_dear`: with what earlier levels have cost it could cost more "
        "than the dearest level; `not_offered`: Berth has not the facts, or no room was missed yet"
    )


@event
class MitigationExpected(Event):
    """The plan that is due next for a slow gang, if nothing changes, and what is not planned.

    It follows a change of the gang's faults or plans, and replaces the one before.
    """

    TYPE: ClassVar[str] = "mitigation.expected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: str = Field(description="the job that is slowed down")
    tenant: str = Field("", description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    level: LevelName = Field(description="the level, `nothing` where none is due within hours")
    due_at: int | None = Field(None, description="ms, when it is due")
    lost_s: float = Field(0.0, ge=0, description="loss of the faults by now, cluster s")
    due_lost_s: float = Field(0.0, ge=0, description="loss at which it is due, cluster s")
    cost_s: float = Field(0.0, ge=0, description="time that it stops the job, cluster s")
    rule: str = Field("", description="as of a plan")
    declined: tuple[DeclinedLevel, ...] = Field((), description="other levels, and why not")


@event
class MitigationApplied(Event):
    """The plan was approved, or needs no approval; placement carries out those of Berth.

    Of the level `validate` fail-slow submits the measuring job, and says once more that it is
    applied where the verdict cordons nodes.
    """

    TYPE: ClassVar[str] = "mitigation.applied.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "plan_id"
    plan_id: str = Field(description="the plan")
    job_id: str = Field(description="the job")
    tenant: str = Field("", description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    level: LevelName = Field(description="the level")
    actor: Actor = Field(description="program that applies it")
    node_ids: tuple[str, ...] = Field(description="nodes of the slow workers that it helps")
    reason: str = Field("", description="as given")
    fault_ids: tuple[str, ...] = Field((), description="faults that it helps")
    by: Literal["operator", "automatic"] = Field(
        "operator", description="an operator, or the pool's setting `mitigation`"
    )
    cordons: bool = Field(False, description="whether nodes that the job leaves are cordoned")


@event
class MitigationTurnedDown(Event):
    """Placement does not carry out an applied plan, or not before there is room.

    A plan that waits for room is carried out before the queue is scanned, by what is repeated here.
    """

    TYPE: ClassVar[str] = "mitigation.turned-down.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "plan_id"
    plan_id: str = Field(description="the plan")
    job_id: str = Field(description="the job")
    tenant: str = Field("", description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    level: LevelName = Field(description="the level")
    node_ids: tuple[str, ...] = Field(description="nodes of the slow workers that it helps")
    fault_ids: tuple[str, ...] = Field((), description="faults that it helps")
    cordons: bool = Field(False, description="whether nodes that the job leaves are cordoned")
    reason: TurnedDownReason = Field(
        description="`no_room` elsewhere; `not_running`: the job starts, stops or migrates; "
        "`not_there`: it is on none of the nodes; `no_checkpoints`; `node_cordoned`: it could not "
        "start again where it is; `over`: it waited for room until it was of no use"
    )
    waits: bool = Field(description="whether it is carried out once there is room")


@event
class MitigationCleared(Event):
    """A plan is of no use any more."""

    TYPE: ClassVar[str] = "mitigation.cleared.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "plan_id"
    plan_id: str = Field(description="the plan")
    job_id: str = Field(description="the job")
    tenant: str = Field("", description="tenant that owns the job")
    reason: str = Field(description="recovered, dismissed, job_ended or turned_down")


@event
class NodeHealthScored(Event):
    """The health score of a node, or of one GPU of it, changed by a fact.

    It recovers with time by itself.
    """

    TYPE: ClassVar[str] = "node.health.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "node_id"
    node_id: str = Field(description="the node")
    score: float = Field(
        gt=0, le=1, description="1 is healthy; half the burden is forgotten a week"
    )
    faults: int = Field(ge=0, description="verified faults since the node is known")
    false_alarms: int = Field(ge=0, description="faults that were taken back")
    repairs: int = Field(
        0, ge=0, description="validations in which it was as fast as its like after a fault"
    )
    fault_id: str = Field(description="the fault, or the job of a validation, that changed it")
    gpu: int | None = Field(None, ge=0, description="the GPU; absent: the node with all its parts")
