"""A job: its specification, its commands, and the decisions of admission about it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from shared.contracts.base import Command, Event, JobId, Model, Name, Text, command, event

PriorityClass = Literal["system", "high", "normal", "low"]
PRIORITY_CLASSES: tuple[PriorityClass, ...] = ("system", "high", "normal", "low")
"""Highest first. A job may preempt only jobs of a lower class."""

NO_RESOURCES = "0: a worker needs some GPU, CPU core (0.001 or more) or memory (1 MiB or more)"
"""The fault of `gang.gpus_per_worker` where all three are 0: no node would bound such jobs."""

CREDENTIAL_WORDS = ("password", "passwd", "secret", "token", "api_key", "apikey", "private_key")


class Gang(Model):
    """Workers of one shape that start together or not at all."""

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
            raise ValueError("above 1 it should be a whole number")
        if round(value * 1000) != value * 1000:
            value = round(value, 3)
        if 0 < value < 0.01:
            raise ValueError("a fraction of a GPU should be at least 0.01")
        return value

    @property
    def gpus(self) -> float:
        """Return the GPUs of the whole gang, in devices."""
        return self.workers * self.gpus_per_worker

    @property
    def has_resources(self) -> bool:
        """Whether a worker takes anything of its node, in thousandths of a GPU or core, or MiB."""
        milli = round(self.gpus_per_worker * 1000) + round(self.cpus_per_worker * 1000)
        return milli + round(self.mem_gib_per_worker * 1024) > 0


class Elastic(Model):
    """The range of workers that the gang may run with."""

    min_workers: int = Field(ge=1, le=4096, description="fewest workers the job can run with")
    max_workers: int = Field(ge=1, le=4096, description="most workers the job can use")

    @model_validator(mode="after")
    def _ordered(self) -> Elastic:
        if self.min_workers > self.max_workers:
            raise ValueError("min_workers should be at most max_workers")
        return self


class Retry(Model):
    """The retry policy: attempts whose program failed count, preempted and lost ones do not."""

    max_attempts: int = Field(
        1, ge=1, le=100, description="number of attempts, including the first"
    )
    backoff_s: float = Field(1.0, ge=0, le=86400, description="cluster seconds before the next one")
    avoid_failed_node: bool = Field(True, description="avoid nodes on which it failed")


class Simulated(Model):
    """How the job behaves on the `virtual` backend; other backends ignore it."""

    duration_s: float | None = Field(
        None, ge=0, le=1e9, description="cluster seconds of work; absent: derived from the job id"
    )
    exit_code: int = Field(0, ge=0, le=255, description="exit code at the end of the work")
    iteration_s: float = Field(1.0, gt=0, le=1e6, description="cluster seconds per iteration")
    restart_s: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="cluster seconds that each start after a preemption takes before work goes on",
    )


class JobSpec(Model):
    """A job as requested. Times are cluster seconds: wall seconds times the pool's time scale."""

    name: Text = Field(min_length=1, description="name of the job, not unique")
    user: Name = Field("unknown", description="id of a person or robot, never a name or address")
    command: tuple[str, ...] = Field((), max_length=256, description="argv of each worker; private")
    image: Text = Field("", description="container image, for backends that use one")
    workdir: str = Field(
        "",
        max_length=4096,
        pattern=r"^(/[^\x00-\x1f\x7f]*)?$",
        description="absolute directory of the workers; empty: a private one for each",
    )
    env: dict[str, str] = Field(
        default_factory=dict, max_length=128, description="plain values or secret://name; private"
    )
    gang: Gang = Field(default_factory=Gang, description="workers and their shape")
    gpu_types: tuple[Name, ...] = Field(
        (), max_length=16, description="allowed GPU types; empty: any"
    )
    gpu_speeds: dict[Name, Annotated[float, Field(gt=0, le=1000)]] | None = Field(
        None, max_length=16, description="measured speed by GPU type; others run at 1"
    )
    node_selector: dict[str, str] = Field(
        default_factory=dict, max_length=16, description="labels that a node must have"
    )
    priority_class: PriorityClass = Field("normal", description="class of the job")
    preemptible: bool = Field(True, description="may be preempted by a job of a higher class")
    spot: bool = Field(False, description="runs on the spot quota; any other job may preempt it")
    guaranteed_s: float = Field(0.0, ge=0, le=1e9, description="cluster s without preemption")
    grace_s: float = Field(5.0, ge=0, le=86400, description="wall s between stop request and kill")
    walltime_s: float | None = Field(
        None, gt=0, le=1e9, description="the user's estimate of the run time, cluster s"
    )
    checkpoint_interval_s: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="cluster s of work between checkpoints; a preemption loses the work since the "
        "last one; absent: no checkpoints, all work is lost",
    )
    checkpoint_cost_s: float = Field(
        0.0,
        ge=0,
        le=1e6,
        description="cluster s per checkpoint; if `grace_s` covers it, a preempted job that makes "
        "checkpoints makes one more at the stop and loses no more than this",
    )
    elastic: Elastic | None = Field(None, description="range of workers; absent: exactly `workers`")
    depends_on: tuple[JobId, ...] = Field(
        (), max_length=64, description="jobs that must have succeeded first"
    )
    retry: Retry = Field(default_factory=Retry, description="attempts after a failure")
    simulated: Simulated | None = Field(None, description="behaviour on the virtual backend")

    @field_validator("command")
    @classmethod
    def _argv(cls, argv: tuple[str, ...]) -> tuple[str, ...]:
        if any(len(arg) > 8192 or "\x00" in arg for arg in argv):
            raise ValueError("each argument should have at most 8192 characters and no NUL")
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
                raise ValueError(
                    f"{key[:40]!r} should have 1 to 128 characters without '=', its value at most "
                    "8192, neither a NUL"
                )
        return pairs

    @field_validator("env")
    @classmethod
    def _no_credentials(cls, env: dict[str, str]) -> dict[str, str]:
        for key, value in env.items():
            is_credential = any(word in key.lower() for word in CREDENTIAL_WORDS)
            if is_credential and value and not value.startswith("secret://"):
                raise ValueError(f"{key} looks like a credential: use secret://name")
        return env


@command
class SubmitJob(Command):
    """Submit a job, or an array of jobs."""

    TYPE: ClassVar[str] = "job.submit.v1"
    OWNER: ClassVar[str] = "admission"
    job_id: JobId = Field(
        description="uuid5 of tenant, pool and idempotency key, set by the gateway"
    )
    tenant: Name = Field(description="set by the gateway from the sender's identity")
    pool: Name = Field(description="set by the gateway: as requested, or the tenant's default")
    idempotency_key: str = Field(
        min_length=1, max_length=128, description="key of the submission, chosen by the sender"
    )
    array_size: int = Field(
        1, ge=1, le=10000, description="number of jobs; index in BERTH_ARRAY_INDEX"
    )
    spec: JobSpec = Field(description="specification of the job")


@command
class CancelJob(Command):
    """Cancel a job, or every job of an array, in any phase; answered once it has ended."""

    TYPE: ClassVar[str] = "job.cancel.v1"
    OWNER: ClassVar[str] = "admission"
    job_id: JobId = Field(description="the job, or the array")
    tenant: Name | None = Field(None, description="tenant that must own it; absent for operators")
    reason: Text = Field("", description="free text for the audit")


@command
class SetQuota(Command):
    """Set the quota of a tenant in one pool."""

    TYPE: ClassVar[str] = "quota.set.v1"
    OWNER: ClassVar[str] = "admission"
    tenant: Name = Field(description="the tenant")
    guaranteed_gpus: float = Field(
        ge=0, le=1e6, description="GPUs admitted regardless of other tenants"
    )
    borrow_gpus: float | None = Field(
        None, ge=0, le=1e6, description="borrowable GPUs beyond it; absent: unlimited"
    )
    spot_gpus: float | None = Field(
        None, ge=0, le=1e6, description="spot GPUs admitted; absent: the pool's forecast decides"
    )


@command
class RejectSubmission(Command):
    """Record that the gateway could not read a submission; admission appends InputRejected."""

    TYPE: ClassVar[str] = "submission.reject.v1"
    OWNER: ClassVar[str] = "admission"
    tenant: Name = Field(description="tenant of the topic")
    topic: str = Field(max_length=249, description="topic of the record")
    partition: int = Field(ge=0, lt=2**31, description="partition of the record")
    offset: int = Field(ge=0, lt=2**63, description="offset of the record")
    reason: str = Field(max_length=2048, description="field, value and violated rule")
    sha256: str = Field(max_length=64, description="sha256 of the bytes")


@event
class CommandAccepted(Event):
    """The answer to an accepted command."""

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
    of: str = Field("", description="subject of the command: a job, node, tenant")
    tenant: str = Field("", description="tenant that sent it")
    principal: str | None = Field(None, description="key or token of the sender; private")
    duplicate: bool = Field(False, description="an equal command was accepted before")


@event
class CommandRefused(Event):
    """The answer to a refused command, with the reason."""

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
    of: str = Field("", description="subject of the command")
    tenant: str = Field("", description="tenant that sent it")
    principal: str | None = Field(None, description="key or token of the sender; private")
    reason: str = Field(description="machine-readable: snake_case")
    detail: str = Field("", description="field, value and violated rule, for people")


DeferReason = Literal["quota", "spot_quota", "dependency", "no_nodes", "backoff"]


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
        "", description="hash of the submitted body, tells a conflict from a repetition"
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
        "", description="hash of the submitted body, tells a conflict from a repetition"
    )


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
        None, description="spot GPUs admitted; absent: the forecast decides"
    )
