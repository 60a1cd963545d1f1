"""The order of the queue: recommended by priority, used by placement."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Event, JobId, Model, event
from shared.contracts.job_spec import PriorityClass
from shared.contracts.pools import RuntimeSource

RANKED_MOST = 512
"""Limit of waiting jobs in one order."""
RUNNING_MOST = 2048
"""Limit of running jobs in one order."""
SHADOW_MOST = 64
"""Limit of waiting jobs in the order of a shadow policy."""
COMMANDS_FROM = 1
"""First release that learns run times by command: before `berth upgrade finish` no entry has one,
as an earlier release would fold another history."""


class QueueEntry(Model):
    """A job that began to wait, with the features that policies use."""

    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    user: str = Field("", description="id of the user")
    name: str = Field("", description="name of the job")
    command_digest: str = Field(
        "", description="digest of command and image without numbers; empty: neither, or not known"
    )
    priority_class: PriorityClass = Field("normal", description="class of the job")
    submitted_at: int = Field(description="ms, when admission first read it")
    gpus: float = Field(description="GPUs of the gang, in devices")
    workers: int = Field(1, description="workers of the gang")
    walltime_s: float | None = Field(None, description="the user's estimate, cluster s")
    spot: bool = Field(False, description="runs on the spot quota")
    preemptible: bool = Field(True, description="may be preempted")
    checkpoint_interval_s: float | None = Field(
        None, description="cluster s between checkpoints; absent: none"
    )
    checkpoint_cost_s: float = Field(0.0, description="cluster s per checkpoint")
    grace_s: float = Field(5.0, description="wall s between stop request and kill")
    restart_s: float = Field(0.0, description="cluster s that a start after a preemption takes")
    duration_s: float | None = Field(
        None, description="simulated cluster s of work; used by the source `oracle` only"
    )
    traceparent: str = Field("", description="trace of its submission")


class UsageDelta(Model):
    """GPU time that a tenant has used since the previous event."""

    tenant: str = Field(description="tenant that owns the job")
    gpu_s: float = Field(description="GPU-seconds, wall")


class Running(Model):
    """A job that holds GPUs."""

    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    gpus: float = Field(description="GPUs that it holds, in devices")
    since: int = Field(description="ms, since when")


class Started(Model):
    """A job whose workers all became ready."""

    job_id: JobId = Field(description="the job")
    at: int = Field(description="ms, when it started")


class Progressed(Model):
    """A running job that reported how far it is."""

    job_id: JobId = Field(description="the job")
    ends_at: int = Field(description="ms, when it should end")


class Stopped(Model):
    """The work of a job after an interrupted attempt, over all its attempts."""

    job_id: JobId = Field(description="the job")
    ran_ms: int = Field(description="wall ms from start to stop, over all attempts")
    kept_ms: int = Field(description="wall ms of work in its last checkpoint")
    restarts: int = Field(description="attempts interrupted after their start")


class Finished(Model):
    """A job that will not run again, with the features that the predictor learns from."""

    job_id: JobId = Field(description="the job")
    ran_s: float = Field(description="cluster s of useful work over all attempts")
    succeeded: bool = Field(True, description="it succeeded")
    teaches: bool = Field(True, description="history learns from its run time")


class NodeGpus(Model):
    """The GPUs of a node that joined, changed or left."""

    node_id: str = Field(description="the node")
    gpus: int = Field(description="its GPUs, in devices; 0: it left")


@event
class QueueChanged(Event):
    """Jobs began to wait, got GPUs or left: one event per batch of inputs."""

    TYPE: ClassVar[str] = "queue.changed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    entered: tuple[QueueEntry, ...] = Field((), description="jobs that began to wait")
    running: tuple[Running, ...] = Field((), description="jobs that got GPUs")
    requeued: tuple[JobId, ...] = Field((), description="jobs that wait again")
    parked: tuple[JobId, ...] = Field((), description="jobs that admission may admit again")
    left: tuple[JobId, ...] = Field((), description="jobs that left")
    usage: tuple[UsageDelta, ...] = Field((), description="GPU time of the jobs that stopped")
    started: tuple[Started, ...] = Field((), description="jobs that started")
    stopped: tuple[Stopped, ...] = Field((), description="jobs whose attempt was interrupted")
    finished: tuple[Finished, ...] = Field((), description="jobs that ran and left")
    nodes: tuple[NodeGpus, ...] = Field((), description="nodes that joined, changed or left")
    progressed: tuple[Progressed, ...] = Field(
        (), description="running jobs that reported how far they are"
    )


class Ranked(Model):
    """The score of one job in an order."""

    job_id: JobId = Field(description="the job")
    score: float = Field(description="higher goes first")
    gittins_s: float | None = Field(
        None,
        description="Gittins rank of its rest, cluster s; of running jobs where a preemption has "
        "a price; absent: unknown",
    )
    run_s: float | None = Field(
        None,
        description="predicted run time, cluster s; of waiting jobs where EASY backfills by it, or "
        "that declare none where CP-SAT or a scheduler decides by it",
    )


@event
class QueueRanked(Event):
    """Priority ranked the first jobs of the queue, best first, and running jobs, lowest first."""

    TYPE: ClassVar[str] = "queue.ranked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field("", description="the pool")
    base_policy: str = Field(description="base policy, also under a learned one")
    runtime: RuntimeSource | Literal["none"] = Field(
        "none", description="first source of the run times used; none: the policy used none"
    )
    learned: str = Field("", description="the learned policy; empty: the base policy decided")
    model_sha256: str = Field(
        "", description="sha256 of the learned policy; empty: the base policy decided"
    )
    ranked: tuple[Ranked, ...] = Field(max_length=RANKED_MOST, description="best first")
    running: tuple[Ranked, ...] = Field(
        (), max_length=RUNNING_MOST, description="jobs with GPUs by the same scores, lowest first"
    )
    waiting: int = Field(0, ge=0, description="jobs in the queue")
    terms: dict[str, float] = Field(
        default_factory=dict, description="terms of the decision by name"
    )
    context: tuple[float, ...] = Field(
        (), max_length=16, description="pool features of networks; empty: not computed anew"
    )
    changes_follow: bool = Field(
        False, description="`QueueReranked` events follow, which name changes to this order"
    )


@event
class ShadowRanked(Event):
    """A shadow policy ranked the same queue, without effect."""

    TYPE: ClassVar[str] = "shadow.ranked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field(description="the pool")
    policy: str = Field(description="a base policy, or `learned:` and a name")
    model_sha256: str = Field("", description="sha256 of a learned policy")
    top: tuple[JobId, ...] = Field(
        max_length=SHADOW_MOST, description="first jobs of its order, best first"
    )
    agreement: float = Field(
        description="Kendall's tau with the effective order, over the first jobs of either"
    )
    waiting: int = Field(0, ge=0, description="jobs in the queue")


@event
class JobStartEstimated(Event):
    """The interval in which a waiting job will start: nine tenths start by p90, one tenth by p10.

    Published when the job has no estimate, or outlived it, or is expected outside of it.
    """

    TYPE: ClassVar[str] = "job.start-estimated.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    pool: str = Field(description="the pool")
    p10_at: int = Field(description="ms")
    p50_at: int = Field(description="ms")
    p90_at: int = Field(description="ms")
    simulated_s: tuple[float, ...] | None = Field(
        None,
        min_length=3,
        max_length=3,
        description="the same as simulated, before calibration, cluster s from now",
    )
    coverage: float | None = Field(
        None, description="share of the pool's recent estimates that held; absent: none was judged"
    )
    samples: int = Field(0, ge=0, description="estimates that were judged, in all")


@event
class IntervalsDrifted(Event):
    """Too many or too few jobs end within the predicted p10 and p90 of their run time.

    Appended once; the levels follow by themselves.
    """

    TYPE: ClassVar[str] = "intervals.drifted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field(description="the pool")
    coverage: float = Field(description="share of the jobs within their interval, old ones fade")
    claimed: float = Field(description="share that the interval claims")
    samples: int = Field(description="jobs that ended with an interval, in all")


@event
class IntervalsRecovered(Event):
    """The predicted intervals of run times hold again."""

    TYPE: ClassVar[str] = "intervals.recovered.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field(description="the pool")
    coverage: float = Field(description="share of the jobs within their interval, old ones fade")
    claimed: float = Field(description="share that the interval claims")
    samples: int = Field(description="jobs that ended with an interval, in all")


DegradeReason = Literal["unknown", "bad_model", "bad_output"]


@event
class PolicyDegraded(Event):
    """A learned or shadow policy failed; the base policy decides alone. Appended once."""

    TYPE: ClassVar[str] = "policy.degraded.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field(description="the pool")
    learned: str = Field(description="the policy, as the pool's settings name it")
    shadow: bool = Field(False, description="it is a shadow policy")
    reason: DegradeReason = Field(description="machine-readable")
    detail: str = Field(
        "", max_length=512, description="field, value and violated rule, for people"
    )


@event
class PolicyRestored(Event):
    """A policy that was degraded decides again."""

    TYPE: ClassVar[str] = "policy.restored.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field(description="the pool")
    learned: str = Field(description="the policy, as the pool's settings name it")
    shadow: bool = Field(False, description="it is a shadow policy")
