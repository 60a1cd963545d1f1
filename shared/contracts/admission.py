"""Admission: which job may enter the queue of its pool, which waits for what, and quotas."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Event, JobId, Name, event
from shared.contracts.job_spec import JobSpec

DeferReason = Literal[
    "quota", "spot_quota", "user_gpus", "dependency", "no_nodes", "backoff", "array_limit"
]


@event
class JobAdmitted(Event):
    """Admission let the job into the queue; from now on only placement may end it."""

    TYPE: ClassVar[str] = "job.admitted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: Name = Field(description="tenant that owns the job")
    submitted_at: int = Field(description="ms, when admission first read it")
    array_index: int | None = Field(None, description="index in its array")
    spec: JobSpec = Field(description="as requested")
    borrowed: bool = Field(False, description="admitted beyond the tenant's guaranteed GPUs")
    digest: str = Field(
        "", description="hash of the submitted body, separates a conflict from a repetition"
    )


@event
class JobDeferred(Event):
    """Admission deferred the job: the reason names what is missing, `detail` how much."""

    TYPE: ClassVar[str] = "job.deferred.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: Name = Field(description="tenant that owns the job")
    reason: DeferReason = Field(description="machine-readable")
    detail: dict[str, float | str] = Field(
        default_factory=dict, description="figures behind the reason"
    )
    spec: JobSpec | None = Field(None, description="in the first deferral only")
    array_index: int | None = Field(None, description="index in its array")
    digest: str = Field("", description="hash of the submitted body")


@event
class JobRejected(Event):
    """Admission rejected the job for good."""

    TYPE: ClassVar[str] = "job.rejected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that sent it")
    name: str = Field("", description="name of the job")
    reason: str = Field(description="machine-readable: snake_case")
    detail: str = Field("", description="field, value and violated rule, for people")
    array_index: int | None = Field(None, description="index in its array")
    digest: str = Field("", description="hash of the submitted body")


@event
class ArrayAccepted(Event):
    """An array was accepted; its jobs `<job_id>.<index>` follow in as many records as needed."""

    TYPE: ClassVar[str] = "array.accepted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the array")
    tenant: Name = Field(description="tenant that owns the job")
    array_size: int = Field(ge=2, le=10000, description="number of its jobs")
    spec: JobSpec = Field(description="specification of each job")
    digest: str = Field(
        "", description="hash of the submitted body, separates a conflict from a repetition"
    )
    program_once: bool = Field(
        False, description="its jobs are recorded without command and env, which are only here"
    )


@event
class ArrayEnded(Event):
    """The last job of an array with `program_once` ended: its program is not needed any more."""

    TYPE: ClassVar[str] = "array.ended.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission", "placement")
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the array")
    tenant: Name = Field(description="tenant that owns the job")


@event
class CancelRequested(Event):
    """Cancellation of an admitted job was requested; placement carries it out."""

    TYPE: ClassVar[str] = "job.cancel-requested.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field("", description="tenant that owns the job")
    command_id: str = Field(description="id of the cancel command")
    principal: str | None = Field(None, description="key or token of the sender; private")
    reason: str = Field("", description="reason as given in the command")
    of_array: bool = Field(
        False, description="part of the cancellation of its array, which is answered as a whole"
    )


@event
class ArrayCancelRequested(Event):
    """Cancellation of an array was requested; its jobs follow in as many records as needed."""

    TYPE: ClassVar[str] = "array.cancel-requested.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the array")
    tenant: str = Field("", description="tenant that owns the job")
    command_id: str = Field(
        description="id of the cancel command, answered when the last job has ended"
    )
    principal: str | None = Field(None, description="key or token of the sender; private")
    reason: str = Field("", description="reason as given in the command")


@event
class JobReadmitted(Event):
    """Admission admitted a job again after a failed attempt."""

    TYPE: ClassVar[str] = "job.readmitted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: Name = Field(description="tenant that owns the job")
    attempt: int = Field(ge=2, description="the attempt that may start now")
    avoid_nodes: tuple[str, ...] = Field((), description="nodes of its failed attempts")


@event
class QuotaChanged(Event):
    """The quota of a tenant in the pool from now on."""

    TYPE: ClassVar[str] = "quota.changed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "tenant"
    tenant: Name = Field(description="tenant that owns the job")
    guaranteed_gpus: float = Field(description="GPUs admitted regardless of other tenants")
    borrow_gpus: float | None = Field(
        None, description="borrowable GPUs beyond it; absent: unlimited"
    )
    spot_gpus: float | None = Field(
        None, description="spot GPUs admitted; absent: the pool's bound decides"
    )
