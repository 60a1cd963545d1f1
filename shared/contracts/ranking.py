"""In what order the waiting jobs should go: advice from priority to placement."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Event, JobId, Model, event
from shared.contracts.jobs import PriorityClass


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


class Ranked(Model):
    """One job's place in the line."""

    job_id: JobId = Field(description="the job")
    score: float = Field(description="higher goes first")


@event
class QueueRanked(Event):
    """The order of the first jobs in line, best first."""

    TYPE: ClassVar[str] = "queue.ranked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("priority",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field("", description="the pool")
    base_policy: str = Field(description="classic policy under any learned one")
    model_sha256: str = Field("", description="of the learned policy; empty: the base decided")
    ranked: tuple[Ranked, ...] = Field(max_length=512, description="best first")
    running: tuple[Ranked, ...] = Field(
        (), description="jobs that hold GPUs, by the same scores; where rank may stop them"
    )
    waiting: int = Field(0, ge=0, description="jobs waiting in all")
    terms: dict[str, float] = Field(default_factory=dict, description="what decided, by name")
