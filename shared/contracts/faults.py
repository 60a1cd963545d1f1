"""Slow workers: the commands and events of the fail-slow service."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Command, Event, Model, Text, command, event
from shared.contracts.parallelism import PipelineProfile, Replicas

Cause = Literal["compute", "communication", "unknown"]
FaultyPart = Literal["gpu", "node", "link", ""]
SuspicionKind = Literal["worker", "job"]


class GangWorker(Model):
    """The node and allocation of one worker of a watched gang."""

    rank: int = Field(ge=0, description="rank of the worker in its gang")
    node_id: str = Field(description="the node")
    allocation_id: str = Field(description="`partition/seq/index/rank`")
    gpus: tuple[int, ...] = Field((), description="its GPUs on the node, in the order it has them")


class WatchedGang(Model):
    """A running job of which the reports are followed."""

    job_id: str = Field(description="the job")
    tenant: str = Field("", description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    workers: tuple[GangWorker, ...] = Field(description="in rank order")
    traceparent: str = Field("", description="trace of the placement that started it")
    gpus: float = Field(0.0, ge=0, description="its GPUs, in devices")
    validates: bool = Field(False, description="its reports are measurements of its nodes")
    preemptible: bool = Field(False, description="a job of the class `system` may stop it")


@command
class DismissFault(Command):
    """Dismiss a suspicion: its node is used as before."""

    TYPE: ClassVar[str] = "fault.dismiss.v1"
    OWNER: ClassVar[str] = "failslow"
    fault_id: str = Field(max_length=128, description="the fault")
    reason: Text = Field("", description="free text for the audit")


@command
class MarkFalseAlarm(Command):
    """Dismiss a suspicion as false: the worker was healthy."""

    TYPE: ClassVar[str] = "fault.mark-false-alarm.v1"
    OWNER: ClassVar[str] = "failslow"
    fault_id: str = Field(max_length=128, description="the fault")
    reason: Text = Field("", description="free text for the audit")


@event
class GangsNoted(Event):
    """Fail-slow started or stopped watching these gangs."""

    TYPE: ClassVar[str] = "gangs.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    started: tuple[WatchedGang, ...] = Field((), description="jobs that were placed")
    ended: tuple[str, ...] = Field((), description="jobs that no longer run")


@event
class FaultSuspected(Event):
    """A worker was slower than its peers in several consecutive reports, or a job than before.

    Of a job as a whole no node is known: `node_id` and `allocation_id` are empty.
    """

    TYPE: ClassVar[str] = "fault.suspected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "fault_id"
    fault_id: str = Field(description="`job/attempt/rank/count`, `job` in the place of a rank")
    job_id: str = Field(description="the job that is slowed down")
    tenant: str = Field("", description="tenant that owns the job")
    node_id: str = Field(description="node of the slow worker, or empty")
    allocation_id: str = Field(description="allocation of the slow worker, or empty")
    slowdown: float = Field(
        ge=1, description="its iteration time over the median of its peers, or over its usual one"
    )
    iteration_s: float = Field(ge=0, description="median of its last iterations, cluster s")
    peers_s: float = Field(ge=0, description="median of its peers, or of the job before, cluster s")
    score: float = Field(description="robust z of the worker among its peers, of a job the shift")
    reports: int = Field(ge=1, description="consecutive reports, of a job iterations, when slow")
    kind: SuspicionKind = Field(
        "worker", description="whether a worker is slower than others or a job than before"
    )
    since_step: int | None = Field(
        None, ge=0, lt=2**53, description="of a job: iteration at which it became slow"
    )
    confidence: float | None = Field(
        None, ge=0, le=1, description="of a job: probability of the change point"
    )
    cause: Cause = Field(
        "unknown", description="whether computing or communicating is slow, as reports show it"
    )
    part: FaultyPart = Field("", description="the part that is slow, or empty")
    gpu: int | None = Field(
        None, ge=0, description="number on the node of the GPU, where the part is one of a worker"
    )
    cause_confidence: float = Field(0.0, ge=0, le=1, description="0 where the cause is unknown")
    cause_evidence: tuple[str, ...] = Field((), description="sentences with figures")
    work: float = Field(
        0.0, ge=0, description="of a job: tokens or samples of its last iterations; 0: unknown"
    )
    earlier_runs: int = Field(
        0,
        ge=0,
        description="of a job: runs of its name, tenant, GPU types and size that it is compared "
        "with; 0: with its own iterations before",
    )
    replicas: Replicas | None = Field(
        None, description="of a worker: the data-parallel groups of its gang, if reported"
    )
    pipeline: PipelineProfile | None = Field(
        None, description="of a job: its pipeline and the delays of its links, if reported"
    )


@event
class FaultCleared(Event):
    """The worker is as fast as its peers again, or its job ended."""

    TYPE: ClassVar[str] = "fault.cleared.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "fault_id"
    fault_id: str = Field(description="the fault")
    job_id: str = Field(description="the job that was slowed down")
    tenant: str = Field("", description="tenant that owns the job")
    node_id: str = Field("", description="node of the worker")
    reason: str = Field(description="recovered or job_ended")
    lost_gpu_s: float = Field(
        0.0,
        ge=0,
        description="cluster s times GPUs that the gang lost since its first open fault; at the "
        "end of the last one",
    )


@event
class FaultDismissed(Event):
    """An operator closed the suspicion."""

    TYPE: ClassVar[str] = "fault.dismissed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "fault_id"
    fault_id: str = Field(description="the fault")
    job_id: str = Field("", description="the job")
    tenant: str = Field("", description="tenant that owns the job")
    node_id: str = Field("", description="node of the worker")
    false_alarm: bool = Field(description="the worker was healthy")
    reason: str = Field("", description="as given")
    lost_gpu_s: float = Field(
        0.0,
        ge=0,
        description="cluster s times GPUs that the gang lost since its first open fault; at the "
        "end of the last one",
    )


@event
class ThresholdsAdjusted(Event):
    """An operator's verdict made suspicions of a kind stricter, or less strict, in the pool."""

    TYPE: ClassVar[str] = "thresholds.adjusted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("failslow",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field(description="the pool")
    kind: SuspicionKind = Field(description="suspicions of workers, or of jobs as a whole")
    steps: int = Field(ge=0, description="steps above the configured thresholds, at most 4")
    strictness: float = Field(ge=1, description="multiple of the least size and score, at most 2")
    false_alarms: int = Field(ge=0, description="false alarms so far")
    confirmed: int = Field(ge=0, description="plans that operators approved so far")
