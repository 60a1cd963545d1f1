"""A job: its specification, its commands, and what admission says of it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from shared.contracts.base import Command, Event, JobId, Model, Name, Text, command, event

PriorityClass = Literal["system", "high", "normal", "low"]
PRIORITY_CLASSES: tuple[PriorityClass, ...] = ("system", "high", "normal", "low")
"""Highest first. A job may preempt only jobs of a class behind its own."""

CREDENTIAL_WORDS = ("password", "passwd", "secret", "token", "api_key", "apikey", "private_key")


class Gang(Model):
    """All workers start together or none does; every worker has the same shape."""

    workers: int = Field(1, ge=1, le=4096, description="workers of the gang")
    gpus_per_worker: float = Field(
        1.0, ge=0, le=64, description="GPUs per worker: whole, or one fraction of a GPU below 1"
    )
    cpus_per_worker: float = Field(1.0, ge=0, le=1024, description="CPU cores per worker")
    mem_gib_per_worker: float = Field(1.0, ge=0, le=16384, description="memory per worker, GiB")

    @field_validator("gpus_per_worker")
    @classmethod
    def _whole_or_one_fraction(cls, value: float) -> float:
        if value > 1 and value != int(value):
            raise ValueError("more than one GPU must be a whole number")
        if round(value * 1000) != value * 1000:
            value = round(value, 3)
        if 0 < value < 0.01:
            raise ValueError("the smallest fraction of a GPU is 0.01")
        return value

    @property
    def gpus(self) -> float:
        """GPUs of the whole gang, in devices."""
        return self.workers * self.gpus_per_worker


class Elastic(Model):
    """The gang may start with any number of workers in this range."""

    min_workers: int = Field(ge=1, le=4096, description="fewest workers the job can run with")
    max_workers: int = Field(ge=1, le=4096, description="most workers the job can use")

    @model_validator(mode="after")
    def _ordered(self) -> Elastic:
        if self.min_workers > self.max_workers:
            raise ValueError("min_workers may not exceed max_workers")
        return self


class Retry(Model):
    """What happens after an attempt whose program failed; a preempted or lost attempt is free."""

    max_attempts: int = Field(1, ge=1, le=100, description="attempts in all, the first included")
    backoff_s: float = Field(1.0, ge=0, le=86400, description="cluster seconds before the next one")
    avoid_failed_node: bool = Field(True, description="not again on the node that failed")


class Simulated(Model):
    """How long the job would run: used by the `virtual` backend alone, ignored by real ones."""

    duration_s: float | None = Field(
        None, ge=0, le=1e9, description="cluster seconds of work; absent: drawn from the job's id"
    )
    exit_code: int = Field(0, ge=0, le=255, description="exit code at the end of the work")
    iteration_s: float = Field(1.0, gt=0, le=1e6, description="cluster seconds per iteration")
    restart_s: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="cluster seconds that each start after a preemption runs before its work "
        "goes on",
    )


class JobSpec(Model):
    """What a user asks for. Times are cluster seconds: wall seconds times the pool's time scale."""

    name: Text = Field(min_length=1, description="what people call it")
    user: Name = Field("unknown", description="id of the person or robot, no name or address")
    command: tuple[str, ...] = Field((), max_length=256, description="argv of each worker; private")
    image: Text = Field("", description="container image, for backends that use one")
    env: dict[str, str] = Field(
        default_factory=dict, max_length=128, description="plain values or secret://name; private"
    )
    gang: Gang = Field(default_factory=Gang, description="workers and their shape")
    gpu_types: tuple[Name, ...] = Field(
        (), max_length=16, description="GPU types allowed; empty: any"
    )
    gpu_speeds: dict[Name, Annotated[float, Field(gt=0, le=1000)]] | None = Field(
        None, max_length=16, description="measured speed by GPU type; others run at 1"
    )
    node_selector: dict[str, str] = Field(
        default_factory=dict, max_length=16, description="labels that a node must carry"
    )
    priority_class: PriorityClass = Field("normal", description="class of the job")
    preemptible: bool = Field(True, description="may be stopped for a job of a higher class")
    spot: bool = Field(False, description="runs on the spot quota and yields to any other job")
    guaranteed_s: float = Field(0.0, ge=0, le=1e9, description="no preemption before, cluster s")
    grace_s: float = Field(5.0, ge=0, le=86400, description="wall s between stop request and kill")
    walltime_s: float | None = Field(
        None, gt=0, le=1e9, description="the user's estimate of the run time, cluster s"
    )
    checkpoint_interval_s: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="cluster s of work between checkpoints, what is past the last one is lost at "
        "a preemption; absent: none are made and all is lost",
    )
    checkpoint_cost_s: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="cluster s one checkpoint costs; where `grace_s` is enough for it, a "
        "preempted job that makes checkpoints saves at the stop and loses no more than this",
    )
    elastic: Elastic | None = Field(None, description="range of workers; absent: exactly `workers`")
    depends_on: tuple[JobId, ...] = Field(
        (), max_length=64, description="jobs that must have succeeded first"
    )
    retry: Retry = Field(default_factory=Retry, description="what to do after a failed attempt")
    simulated: Simulated | None = Field(None, description="for the virtual backend alone")

    @field_validator("command")
    @classmethod
    def _argv(cls, argv: tuple[str, ...]) -> tuple[str, ...]:
        if any(len(arg) > 8192 or "\x00" in arg for arg in argv):
            raise ValueError("an argument is longer than 8192 characters or holds a NUL")
        return argv

    @field_validator("env", "node_selector")
    @classmethod
    def _pairs(cls, pairs: dict[str, str]) -> dict[str, str]:
        for key, value in pairs.items():
            if (
                not key
                or len(key) > 128
                or len(value) > 8192
                or "\x00" in key + value
                or "=" in key
            ):
                raise ValueError(f"{key[:40]!r} is no name for a value, or its value is too long")
        return pairs

    @field_validator("env")
    @classmethod
    def _no_credentials(cls, env: dict[str, str]) -> dict[str, str]:
        for key, value in env.items():
            word = next((w for w in CREDENTIAL_WORDS if w in key.lower()), None)
            if word and value and not value.startswith("secret://"):
                raise ValueError(f"{key} looks like a credential: use secret://name")
        return env


@command
class SubmitJob(Command):
    """Run this job, or an array of it."""

    TYPE: ClassVar[str] = "job.submit.v1"
    OWNER: ClassVar[str] = "admission"
    job_id: JobId = Field(description="uuid5 of tenant and idempotency key, stamped by the gateway")
    tenant: Name = Field(description="stamped by the gateway from the sender's identity")
    pool: Name = Field(description="stamped by the gateway: asked for, or the tenant's default")
    idempotency_key: str = Field(min_length=1, max_length=128, description="the sender's own key")
    array_size: int = Field(1, ge=1, le=10000, description="copies; index in BERTH_ARRAY_INDEX")
    spec: JobSpec = Field(description="the job")


@command
class CancelJob(Command):
    """Stop a job, or every job of an array, whatever its phase; answered when its end is known."""

    TYPE: ClassVar[str] = "job.cancel.v1"
    OWNER: ClassVar[str] = "admission"
    job_id: JobId = Field(description="the job, or the array")
    tenant: Name | None = Field(None, description="whose it must be; absent for operators")
    reason: Text = Field("", description="for the record")


@command
class SetQuota(Command):
    """Set a tenant's shares of one pool."""

    TYPE: ClassVar[str] = "quota.set.v1"
    OWNER: ClassVar[str] = "admission"
    tenant: Name = Field(description="whose quota")
    guaranteed_gpus: float = Field(ge=0, le=1e6, description="admitted whatever others use")
    borrow_gpus: float | None = Field(
        None, ge=0, le=1e6, description="above it, while others leave theirs; absent: no bound"
    )
    spot_gpus: float | None = Field(
        None, ge=0, le=1e6, description="admitted spot GPUs; absent: the pool's forecast decides"
    )


@command
class RejectSubmission(Command):
    """The gateway met a submission that is no job; admission says so for good."""

    TYPE: ClassVar[str] = "submission.reject.v1"
    OWNER: ClassVar[str] = "admission"
    tenant: Name = Field(description="whose topic it was")
    topic: str = Field(max_length=249, description="where it lies")
    partition: int = Field(ge=0, lt=2**31, description="where it lies")
    offset: int = Field(ge=0, lt=2**63, description="where it lies")
    reason: str = Field(max_length=2048, description="field, value and rule")
    sha256: str = Field(max_length=64, description="of the bytes")


@event
class CommandAccepted(Event):
    """The answer to a command: it is done."""

    TYPE: ClassVar[str] = "command.accepted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = (
        "access",
        "admission",
        "placement",
        "failslow",
        "throttle",
    )
    SUBJECT: ClassVar[str] = "command_id"
    command_id: str = Field(description="CloudEvent id of the command")
    command_type: str = Field(description="its wire name")
    of: str = Field("", description="what it was about: a job, node, tenant")
    tenant: str = Field("", description="who asked")
    principal: str | None = Field(None, description="by which key or token; private")
    duplicate: bool = Field(False, description="the same wish was granted before")


@event
class CommandRefused(Event):
    """The answer to a command: no, and why."""

    TYPE: ClassVar[str] = "command.refused.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = (
        "access",
        "admission",
        "placement",
        "failslow",
        "throttle",
    )
    SUBJECT: ClassVar[str] = "command_id"
    command_id: str = Field(description="CloudEvent id of the command")
    command_type: str = Field(description="its wire name")
    of: str = Field("", description="what it was about")
    tenant: str = Field("", description="who asked")
    principal: str | None = Field(None, description="by which key or token; private")
    reason: str = Field(description="machine-readable: snake_case")
    detail: str = Field("", description="field, value and rule, for people")


DeferReason = Literal["quota", "spot_quota", "dependency", "no_nodes", "backoff"]


@event
class JobAdmitted(Event):
    """The job may enter the queue; from here on placement alone may end it."""

    TYPE: ClassVar[str] = "job.admitted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: Name = Field(description="whose")
    submitted_at: int = Field(description="ms, when admission first met it")
    array_index: int | None = Field(None, description="index in its array")
    spec: JobSpec = Field(description="as asked for")
    borrowed: bool = Field(False, description="beyond the tenant's guaranteed share")
    digest: str = Field("", description="of the submitted body, to tell a conflict from a repeat")


@event
class JobDeferred(Event):
    """Not yet: the reason says what is missing, and by how much."""

    TYPE: ClassVar[str] = "job.deferred.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: Name = Field(description="whose")
    reason: DeferReason = Field(description="machine-readable")
    detail: dict[str, float | str] = Field(default_factory=dict, description="the numbers")
    spec: JobSpec | None = Field(None, description="on the first deferral only")
    array_index: int | None = Field(None, description="index in its array")
    digest: str = Field("", description="of the submitted body")


@event
class JobRejected(Event):
    """Never: the job will not run as it was asked for."""

    TYPE: ClassVar[str] = "job.rejected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="who asked")
    name: str = Field("", description="what people call it")
    reason: str = Field(description="machine-readable: snake_case")
    detail: str = Field("", description="field, value and rule, for people")
    array_index: int | None = Field(None, description="index in its array")
    digest: str = Field("", description="of the submitted body")


@event
class ArrayAccepted(Event):
    """An array was let in; its jobs `<job_id>.<index>` follow, as many as a record holds."""

    TYPE: ClassVar[str] = "array.accepted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the array")
    tenant: Name = Field(description="whose")
    array_size: int = Field(ge=2, le=10000, description="its jobs")
    spec: JobSpec = Field(description="of each of them")
    digest: str = Field("", description="of the submitted body, to tell a conflict from a repeat")


@event
class CancelRequested(Event):
    """Somebody wants an admitted job to end; placement sees to it."""

    TYPE: ClassVar[str] = "job.cancel-requested.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field("", description="whose job")
    command_id: str = Field(description="the cancel that asked")
    principal: str | None = Field(None, description="by which key or token; private")
    reason: str = Field("", description="as given")
    of_array: bool = Field(False, description="asked of its array, whose end is what is answered")


@event
class ArrayCancelRequested(Event):
    """Somebody wants an array to end: its jobs are told in turn, as many as a record holds."""

    TYPE: ClassVar[str] = "array.cancel-requested.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the array")
    tenant: str = Field("", description="whose")
    command_id: str = Field(description="the cancel that asked, answered when the last job ended")
    principal: str | None = Field(None, description="by which key or token; private")
    reason: str = Field("", description="as given")


@event
class JobReadmitted(Event):
    """A failed attempt may be tried again."""

    TYPE: ClassVar[str] = "job.readmitted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: Name = Field(description="whose")
    attempt: int = Field(ge=2, description="the attempt that may start now")
    avoid_nodes: tuple[str, ...] = Field((), description="nodes of failed attempts")


@event
class QuotaChanged(Event):
    """A tenant's shares of the pool, from now on."""

    TYPE: ClassVar[str] = "quota.changed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "tenant"
    tenant: Name = Field(description="whose")
    guaranteed_gpus: float = Field(description="admitted whatever others use")
    borrow_gpus: float | None = Field(None, description="above it, absent: no bound")
    spot_gpus: float | None = Field(None, description="absent: the forecast decides")


class JobEnd(Model):
    """How a job that admission had let in came to its end."""

    job_id: JobId = Field(description="the job")
    outcome: Literal["succeeded", "failed", "cancelled"] = Field(description="how it ended")


@event
class JobsReleased(Event):
    """Admission noted the ends of these jobs: their quota is free."""

    TYPE: ClassVar[str] = "jobs.released.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    ends: tuple[JobEnd, ...] = Field(description="in the order of the placement ledger")


@event
class AttemptNoted(Event):
    """Admission noted a failed attempt that it will re-admit at a set time."""

    TYPE: ClassVar[str] = "attempt.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the job")
    attempt: int = Field(ge=1, description="the attempt that failed")
    node_ids: tuple[str, ...] = Field((), description="where it ran")
    not_before: int = Field(description="ms: re-admitted then")


@event
class JobSizeNoted(Event):
    """Admission noted that an elastic job goes on with another number of workers."""

    TYPE: ClassVar[str] = "job.size-noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the job")
    workers: int = Field(ge=1, description="what its tenant's quota is charged from now on")


@event
class TenantNoted(Event):
    """A decider restates what it needs to know of a tenant."""

    TYPE: ClassVar[str] = "tenant.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission", "priority", "throttle")
    SUBJECT: ClassVar[str] = "tenant"
    PUBLIC: ClassVar[bool] = False
    tenant: Name = Field(description="who")
    active: bool = Field(True, description="may submit")
    weight: float = Field(1.0, gt=0, description="share of the pool it should get")


class NodeShape(Model):
    """What one node offers; enough to say whether a worker could ever fit."""

    node_id: str = Field(description="the node")
    gpu_type: str = Field(description="its GPU type")
    gpus: int = Field(ge=0, description="its GPUs, in devices")
    cpus: float = Field(ge=0, description="its cores")
    mem_gib: float = Field(ge=0, description="its memory, GiB")
    labels: dict[str, str] = Field(default_factory=dict, description="what selectors match")


@event
class CapacityNoted(Event):
    """Admission noted nodes that came or went for good."""

    TYPE: ClassVar[str] = "capacity.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    joined: tuple[NodeShape, ...] = Field((), description="nodes and their shapes")
    left: tuple[str, ...] = Field((), description="nodes that left")
