"""Internal events of admission: what it recorded about jobs, tenants and nodes."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Event, JobId, Model, Name, event
from shared.contracts.bounds import TenantBounds, UserBounds


class JobEnd(Model):
    """The end of an admitted job."""

    job_id: JobId = Field(description="the job")
    outcome: Literal["succeeded", "failed", "cancelled", "transferred"] = Field(
        description="how it ended in this pool"
    )


@event
class JobsReleased(Event):
    """Admission recorded the ends of these jobs and released their quota."""

    TYPE: ClassVar[str] = "jobs.released.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    ends: tuple[JobEnd, ...] = Field(description="in the order of the placement ledger")


@event
class AttemptNoted(Event):
    """Admission recorded a failed attempt and when it will admit the job again."""

    TYPE: ClassVar[str] = "attempt.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the job")
    attempt: int = Field(ge=1, description="the attempt that failed")
    node_ids: tuple[str, ...] = Field((), description="nodes on which it ran")
    not_before: int = Field(description="ms, when it is admitted again")


@event
class JobSizeNoted(Event):
    """Admission recorded that an elastic job continues with another number of workers."""

    TYPE: ClassVar[str] = "job.size-noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the job")
    workers: int = Field(ge=1, description="workers charged to its tenant's quota from now on")


@event
class TenantNoted(Event):
    """A decider recorded the state of a tenant that its decisions need."""

    TYPE: ClassVar[str] = "tenant.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission", "priority", "throttle")
    SUBJECT: ClassVar[str] = "tenant"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    active: bool = Field(True, description="may submit jobs")
    weight: float = Field(1.0, gt=0, description="its weight in fair share")
    bounds: TenantBounds | None = Field(
        None, description="bounds of its submissions, for admission; absent: none"
    )


@event
class UserNoted(Event):
    """Admission recorded the bounds of a user."""

    TYPE: ClassVar[str] = "user.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "user"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="the tenant")
    user: Name = Field(description="the user")
    bounds: UserBounds | None = Field(
        None, description="bounds of its submissions; absent: it is deleted, and has none"
    )


class NodeShape(Model):
    """The capacity of one node, from which admission computes whether a worker could ever fit."""

    node_id: str = Field(description="the node")
    gpu_type: str = Field(description="its GPU type")
    gpus: int = Field(ge=0, description="its GPUs, in devices")
    cpus: float = Field(ge=0, description="its CPU cores")
    mem_gib: float = Field(ge=0, description="its memory, GiB")
    labels: dict[str, str] = Field(
        default_factory=dict, description="labels that node selectors match"
    )


@event
class CapacityNoted(Event):
    """Admission recorded nodes that joined or left for good."""

    TYPE: ClassVar[str] = "capacity.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    joined: tuple[NodeShape, ...] = Field((), description="nodes that joined")
    left: tuple[str, ...] = Field((), description="nodes that left")
