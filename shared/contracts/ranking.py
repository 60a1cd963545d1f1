"""In what order the waiting jobs should go: advice from priority to placement."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.access import RuntimeSource
from shared.contracts.base import Event, JobId, Model, event
from shared.contracts.jobs import PriorityClass

RANKED_MOST = 512
"""Waiting jobs that one order names."""
RUNNING_MOST = 2048
"""Running jobs that one order names."""
SHADOW_MOST = 64
"""Waiting jobs that a shadow's order names."""


class QueueEntry(Model):
    """A job that began to wait, with what a policy needs to know of it."""

    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    user: str = Field("", description="who asked")
    name: str = Field("", description="what people call it")
    priority_class: PriorityClass = Field("normal", description="its class")
    submitted_at: int = Field(description="ms, when admission first met it")
    gpus: float = Field(description="GPUs of the gang, in devices")
    workers: int = Field(1, description="workers of the gang")
    walltime_s: float | None = Field(None, description="the user's estimate, cluster s")
    spot: bool = Field(False, description="on the spot quota")
    preemptible: bool = Field(True, description="may be stopped for another job")
    checkpoint_interval_s: float | None = Field(
        None, description="cluster s between checkpoints; absent: none are made"
    )
    checkpoint_cost_s: float = Field(0.0, description="cluster s one checkpoint costs")
    grace_s: float = Field(5.0, description="wall s between stop request and kill")
    restart_s: float = Field(0.0, description="cluster s that a start after a stop costs")
    duration_s: float | None = Field(
        None, description="simulated cluster s of work; read by the source `oracle` alone"
    )
    traceparent: str = Field("", description="trace of its submission")


class UsageDelta(Model):
    """GPU time that a tenant has used since the last note."""

    tenant: str = Field(description="whose")
    gpu_s: float = Field(description="GPU-seconds, wall")


class Running(Model):
    """A job that holds GPUs since some moment."""

    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    gpus: float = Field(description="GPUs it holds, in devices")
    since: int = Field(description="ms")


class Started(Model):
    """A job whose workers were all ready: from here on it works."""

    job_id: JobId = Field(description="the job")
    at: int = Field(description="ms of the go")


class Stopped(Model):
    """What a job has to show after an attempt that was cut short; all of it over all attempts."""

    job_id: JobId = Field(description="the job")
    ran_ms: int = Field(description="wall ms from go to stop, over all attempts")
    kept_ms: int = Field(description="wall ms of work in its last checkpoint")
    restarts: int = Field(description="attempts that were cut short after their go")


class Finished(Model):
    """A job that will not run again, and what the predictor learns of it."""

    job_id: JobId = Field(description="the job")
    ran_s: float = Field(description="cluster s of useful work over all attempts")
    succeeded: bool = Field(True, description="its program ended well")


class NodeGpus(Model):
    """A node that came, changed or went."""

    node_id: str = Field(description="the node")
    gpus: int = Field(description="its GPUs, in devices; 0: it is gone")


@event
class QueueChanged(Event):
    """Who began to wait, who holds GPUs, who is gone: one note per batch of inputs."""

    TYPE: ClassVar[str] = "queue.changed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    entered: tuple[QueueEntry, ...] = Field((), description="jobs that wait from now on")
    running: tuple[Running, ...] = Field((), description="jobs that hold GPUs from now on")
    requeued: tuple[JobId, ...] = Field((), description="jobs that wait again")
    parked: tuple[JobId, ...] = Field((), description="jobs that admission may let in again")
    left: tuple[JobId, ...] = Field((), description="jobs that are gone")
    usage: tuple[UsageDelta, ...] = Field((), description="of the jobs that stopped running")
    started: tuple[Started, ...] = Field((), description="jobs that work from now on")
    stopped: tuple[Stopped, ...] = Field((), description="jobs whose attempt was cut short")
    finished: tuple[Finished, ...] = Field((), description="jobs that ran and are gone")
    nodes: tuple[NodeGpus, ...] = Field((), description="nodes that came, changed or went")


class Ranked(Model):
    """One job's place in the line."""

    job_id: JobId = Field(description="the job")
    score: float = Field(description="higher goes first")


@event
class QueueRanked(Event):
    """The order of the first jobs in line, best first, and who of the running is worth least."""

    TYPE: ClassVar[str] = "queue.ranked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field("", description="the pool")
    base_policy: str = Field(description="classic policy under any learned one")
    runtime: RuntimeSource | Literal["none"] = Field(
        "none", description="first source of the run times that decided; none: no run time did"
    )
    learned: str = Field("", description="the learned policy; empty: the base decided")
    model_sha256: str = Field("", description="of the learned policy; empty: the base decided")
    ranked: tuple[Ranked, ...] = Field(max_length=RANKED_MOST, description="best first")
    running: tuple[Ranked, ...] = Field(
        (), max_length=RUNNING_MOST, description="jobs on GPUs on the same scale, lowest first"
    )
    waiting: int = Field(0, ge=0, description="jobs waiting in all")
    terms: dict[str, float] = Field(default_factory=dict, description="what decided, by name")
    context: tuple[float, ...] = Field(
        (), max_length=16, description="what networks are told of the pool, if looked at anew"
    )


@event
class ShadowRanked(Event):
    """What another policy would have said of the same line; nobody acts on it."""

    TYPE: ClassVar[str] = "shadow.ranked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field(description="the pool")
    policy: str = Field(description="a classic policy, or `learned:` and a name")
    model_sha256: str = Field("", description="of a learned policy")
    top: tuple[JobId, ...] = Field(max_length=SHADOW_MOST, description="its first jobs, best first")
    agreement: float = Field(
        description="Kendall's tau with the order that acts, over the first jobs of either"
    )
    waiting: int = Field(0, ge=0, description="jobs waiting in all")


DegradeReason = Literal["unknown", "bad_model", "bad_output"]


@event
class PolicyDegraded(Event):
    """A learned or shadow policy cannot say anything; the base goes on alone. Said once."""

    TYPE: ClassVar[str] = "policy.degraded.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field(description="the pool")
    learned: str = Field(description="the policy, as the pool's settings name it")
    shadow: bool = Field(False, description="it was only a shadow")
    reason: DegradeReason = Field(description="machine-readable")
    detail: str = Field("", max_length=512, description="field, value and rule, for people")


@event
class PolicyRestored(Event):
    """A policy that was degraded decides again."""

    TYPE: ClassVar[str] = "policy.restored.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field(description="the pool")
    learned: str = Field(description="the policy, as the pool's settings name it")
    shadow: bool = Field(False, description="it is only a shadow")
