"""An attempt of a placed job: its start, checkpoints, interruption and end on its GPUs."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Event, JobId, event
from shared.contracts.failures import Failure, WorkerFailure
from shared.contracts.placement import Allocation
from shared.contracts.transfers import TransferTarget


@event
class WorkersReady(Event):
    """Some workers of a gang are prepared; the gang starts when all are."""

    TYPE: ClassVar[str] = "workers.ready.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    ranks: tuple[int, ...] = Field(description="ranks of the workers that became ready")
    master_port: int | None = Field(None, description="port of rank 0, if it is among them")


@event
class JobStarted(Event):
    """All workers are ready: executors start the programs."""

    TYPE: ClassVar[str] = "job.started.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    gpus: float = Field(0.0, ge=0, description="GPUs of the gang as placed, in devices")
    master_port: int | None = Field(
        None, description="port of the worker of rank 0, as it reported; absent: none reported"
    )


@event
class JobCheckpointed(Event):
    """A running job reported a checkpoint, just after which rank may stop it.

    It is recorded under `preemption_protection=progress`, at most once in 30 s of work.
    """

    TYPE: ClassVar[str] = "job.checkpointed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    worked_ms: int = Field(
        ge=1, description="wall ms of work of this start that are in the checkpoint"
    )
    step: int = Field(0, ge=0, description="its step, as the job named it")
    restart_ms: int | None = Field(
        None,
        ge=0,
        description="wall ms from the start until its work went on, by this first report of it; "
        "absent: not known",
    )


@event
class JobProgressed(Event):
    """A running job reported its iterations, from which its end is expected.

    It is recorded under `use_progress`, at most once a minute, and where it is news: the first of a
    start, a rest that differs by a tenth, a further tenth of the iterations.
    """

    TYPE: ClassVar[str] = "job.progressed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    step: int = Field(ge=0, description="iterations that are done, as the job counts them")
    steps_total: int = Field(ge=1, description="iterations of the whole training")
    ends_at: int = Field(description="ms, when it should end; at the latest its `walltime_s`")
    restart_ms: int | None = Field(
        None,
        ge=0,
        description="wall ms from the start until its work went on, by this first report of it; "
        "absent: not known",
    )


@event
class JobStartFailed(Event):
    """A worker was refused or the gang was not ready in time; it stops and the job waits again."""

    TYPE: ClassVar[str] = "job.start-failed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    node_ids: tuple[str, ...] = Field(description="nodes to avoid")
    reason: str = Field(description="machine-readable: snake_case")
    failure: WorkerFailure | None = Field(None, description="first failure of the gang, if known")


@event
class JobPreempted(Event):
    """A running job is evicted; its GPUs are released only when the stop is reported."""

    TYPE: ClassVar[str] = "job.preempted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the victim")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    reason: Literal["higher_class", "spot_reclaimed", "outranked", "node_drained", "node_lost"] = (
        Field(description="machine-readable")
    )
    by_job_id: str = Field("", description="the job that it makes room for")
    lost_work_s: float = Field(0.0, ge=0, description="cluster s since the last checkpoint")
    terms: dict[str, float] = Field(
        default_factory=dict, description="terms of the decision by name"
    )


MigrationReason = Literal["drain", "slow_node", "defragment", "balance", "restart", "scheduled"]
"""`restart` goes on where it ran, from its last checkpoint, `scheduled` on nodes that the pool's
scheduler chose; no earlier release reads them, so none is planned before `berth upgrade finish`."""


@event
class JobMigrated(Event):
    """A running job migrates to other nodes, or restarts on its own; GPUs are reserved for it.

    The event replaces JobPreempted: the gang stops with its grace period, JobRequeued follows, and
    the job continues from its last checkpoint on the reserved GPUs.
    """

    TYPE: ClassVar[str] = "job.migrated.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job that migrates")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    reason: MigrationReason = Field(description="machine-readable")
    by_job_id: str = Field("", description="the job that gets its GPUs; empty: none in particular")
    from_nodes: tuple[str, ...] = Field(description="nodes on which it ran")
    to_nodes: tuple[str, ...] = Field(description="nodes on which it will continue")
    target: tuple[Allocation, ...] = Field(min_length=1, description="allocations reserved for it")
    lost_work_s: float = Field(0.0, ge=0, description="cluster s since the last checkpoint")


@event
class JobResized(Event):
    """A running elastic job is resized to more or fewer workers.

    As for JobMigrated: stop, checkpoint, and a start on the reserved GPUs.
    """

    TYPE: ClassVar[str] = "job.resized.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job that grows or shrinks")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    reason: Literal["grow", "shrink"] = Field(description="machine-readable")
    from_workers: int = Field(ge=1, description="workers before")
    to_workers: int = Field(ge=1, description="workers after")
    target: tuple[Allocation, ...] = Field(min_length=1, description="allocations reserved for it")
    by_job_id: str = Field("", description="the job that it makes room for, if it shrinks")
    lost_work_s: float = Field(0.0, ge=0, description="cluster s since the last checkpoint")


@event
class JobStopRequested(Event):
    """A placed job is stopped for a reason other than preemption."""

    TYPE: ClassVar[str] = "job.stop-requested.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    reason: Literal["cancelled", "start_failed", "worker_failed"] = Field(
        description="machine-readable"
    )
    detail: str = Field("", description="reason as given in a cancel command")


@event
class AllocationReleased(Event):
    """The worker is gone and its GPUs are released."""

    TYPE: ClassVar[str] = "allocation.released.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="job of the worker")
    tenant: str = Field("", description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    allocation_id: str = Field(description="`partition/seq/index/rank`")
    node_id: str = Field(description="the node")
    reason: Literal["exited", "stopped", "refused", "lease_over"] = Field(
        description="machine-readable"
    )
    exit_code: int | None = Field(None, description="exit code of the worker; absent: it never ran")
    failure: Failure | None = Field(None, description="why it failed, as its node reported")


@event
class JobRequeued(Event):
    """All allocations of an interrupted or failed attempt are released; the job waits again."""

    TYPE: ClassVar[str] = "job.requeued.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=2, description="number of the attempt that it waits for")
    reason: str = Field(description="machine-readable: snake_case")
    avoid_nodes: tuple[str, ...] = Field((), description="nodes on which an attempt failed")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of the previous attempt, wall")


@event
class JobAttemptFailed(Event):
    """The attempt failed and the retry policy allows another; admission decides when."""

    TYPE: ClassVar[str] = "job.attempt-failed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    exit_code: int | None = Field(None, description="exit code of the first worker that failed")
    node_ids: tuple[str, ...] = Field((), description="nodes on which it ran")
    reason: str = Field(description="machine-readable: snake_case")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of this attempt, wall")
    failure: WorkerFailure | None = Field(None, description="first failure of the gang, if known")


@event
class JobSucceeded(Event):
    """The job ended: every worker exited with 0."""

    TYPE: ClassVar[str] = "job.succeeded.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt that succeeded")
    ran_ms: int = Field(0, ge=0, description="wall ms from start to end")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of this attempt, wall")


@event
class JobFailed(Event):
    """The job ended: its last attempt failed."""

    TYPE: ClassVar[str] = "job.failed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the last attempt")
    exit_code: int | None = Field(None, description="exit code of the first worker that failed")
    reason: str = Field(description="machine-readable: snake_case")
    ran_ms: int = Field(0, ge=0, description="wall ms of the last attempt")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of this attempt, wall")
    failure: WorkerFailure | None = Field(None, description="first failure of the gang, if known")


@event
class JobCancelled(Event):
    """The job was cancelled, or left its pool; by admission if it was not admitted yet."""

    TYPE: ClassVar[str] = "job.cancelled.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission", "placement")
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(1, ge=1, description="number of the interrupted attempt")
    reason: str = Field("", description="reason as given in the command")
    ran_ms: int = Field(0, ge=0, description="wall ms of the last attempt")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of this attempt, wall")
    transferred_to: TransferTarget | None = Field(
        None, description="the pool in which it goes on, without having been cancelled"
    )
