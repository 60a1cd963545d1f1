"""Placement: the GPUs that a job gets, and its lifecycle on them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Event, JobId, Local, Model, event
from shared.contracts.failures import Failure, WorkerFailure
from shared.contracts.jobs import JobSpec
from shared.contracts.ranking import Ranked


class Allocation(Model):
    """GPUs of one node given to one worker; its id is `partition/seq/index/rank` of JobPlaced."""

    rank: int = Field(ge=0, description="rank of the worker in its gang")
    node_id: str = Field(description="the node")
    gpus: tuple[int, ...] = Field((), description="indices of its GPUs on the node")
    gpu_milli: int = Field(1000, ge=0, le=1000, description="thousandths of each of these GPUs")
    cpus: float = Field(0.0, ge=0, description="CPU cores")
    mem_gib: float = Field(0.0, ge=0, description="memory, GiB")


@event
class JobEnqueued(Event):
    """The job entered the queue of its pool and waits for GPUs."""

    TYPE: ClassVar[str] = "job.enqueued.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(1, ge=1, description="number of the attempt, from 1")
    submitted_at: int = Field(description="ms, when admission first read it")
    array_index: int | None = Field(None, description="index in its array")
    spec: JobSpec = Field(description="as requested")
    avoid_nodes: tuple[str, ...] = Field((), description="nodes on which an attempt failed")


@event
class RanksNoted(Event):
    """Placement recorded the order that priority recommends."""

    TYPE: ClassVar[str] = "ranks.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    base_policy: str = Field("", description="base policy of the order")
    model_sha256: str = Field(
        "", description="sha256 of the learned policy; empty: the base policy decided"
    )
    ranked_at: int = Field(description="ms, `at` of the QueueRanked record")
    ranked: tuple[Ranked, ...] = Field(description="best first")
    running: tuple[Ranked, ...] = Field((), description="jobs with GPUs, by the same scores")


SolverStatus = Literal["", "optimal", "feasible", "kept_greedy", "late", "died", "refused"]
"""`kept_greedy`: the solver found no better plan than greedy's, which is used. `late`, `died` and
`refused` (an invalid plan): there was no usable plan, and greedy planned the round alone."""


@event
class JobPlaced(Event):
    """The gang got its GPUs, one allocation per worker; executors prepare the workers."""

    TYPE: ClassVar[str] = "job.placed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    allocations: tuple[Allocation, ...] = Field(min_length=1, description="one per worker")
    waited_ms: int = Field(ge=0, description="wall ms in the queue")
    policy: str = Field(description="policies that decided: order and placement")
    score: float | None = Field(None, description="score of its rank; absent: unranked")
    model_sha256: str = Field(
        "", description="sha256 of the learned policy that ranked it; empty: none"
    )
    terms: dict[str, float] = Field(
        default_factory=dict, description="terms of the decision by name"
    )
    solver: SolverStatus = Field(
        "", description="status of the solver; empty: the round was not contended"
    )


HoldReason = Literal[
    "no_capacity",
    "no_node_fits",
    "behind_reservation",
    "behind_head",
    "reserved_for_head",
    "draining",
]


@event
class JobHeld(Event):
    """The pool cannot place the job now; appended when the hold reason changes."""

    TYPE: ClassVar[str] = "job.held.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    reason: HoldReason = Field(description="machine-readable")
    short_gpus: float = Field(0.0, ge=0, description="GPUs missing for the whole gang, in devices")
    detail: dict[str, float | str] = Field(
        default_factory=dict, description="figures behind the reason"
    )


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


MoveReason = Literal["drain", "slow_node", "defragment", "balance"]


@event
class JobMigrated(Event):
    """A running job migrates to other nodes, where GPUs are reserved for it.

    The event replaces JobPreempted: the gang stops with its grace period, JobRequeued follows, and
    the job continues from its last checkpoint on the reserved GPUs.
    """

    TYPE: ClassVar[str] = "job.migrated.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job that migrates")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    reason: MoveReason = Field(description="machine-readable")
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
    """The job ended because it was cancelled; by admission if it was not admitted yet."""

    TYPE: ClassVar[str] = "job.cancelled.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission", "placement")
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(1, ge=1, description="number of the interrupted attempt")
    reason: str = Field("", description="reason as given in the command")
    ran_ms: int = Field(0, ge=0, description="wall ms of the last attempt")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of this attempt, wall")


@event
class RoundEnded(Event):
    """A placement round ended with jobs in the queue; the next follows a change."""

    TYPE: ClassVar[str] = "round.ended.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    waiting: int = Field(ge=0, description="jobs left in the queue")
    unfinished: bool = Field(False, description="interrupted at its limits: another round follows")
    again_at: int | None = Field(
        None, description="ms, when another round is due even without a change"
    )


@event
class RoundOpened(Event):
    """A contended round waits for the solver; nothing starts before its plan, or before `until`."""

    TYPE: ClassVar[str] = "round.opened.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    waiting: int = Field(ge=0, description="jobs in the queue")
    until: int = Field(description="ms, when greedy plans the round without the solver")


class PlannedStart(Model):
    """A waiting job and its planned allocations."""

    job_id: JobId = Field(description="the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    allocations: tuple[Allocation, ...] = Field(min_length=1, description="one per worker")
    terms: dict[str, float] = Field(
        default_factory=dict, description="terms of the decision by name"
    )


class PlannedStop(Model):
    """A victim of the plan and the waiting job that it makes room for."""

    job_id: JobId = Field(description="the victim")
    attempt: int = Field(ge=1, description="number of the attempt")
    by_job_id: JobId = Field(description="the job that it makes room for")


class PlanReady(Local):
    """The solver's plan of an open round; placement drops the parts that no longer apply."""

    at_seq: int = Field(description="seq of the record with the RoundOpened that it answers")
    status: SolverStatus = Field(description="how the plan was found")
    starts: tuple[PlannedStart, ...] = Field((), description="in queue order")
    stops: tuple[PlannedStop, ...] = Field((), description="victims")
    moves: tuple[PlannedStart, ...] = Field(
        (), description="victims to migrate, if the rules allow it; also in `stops`"
    )
    weighed: tuple[JobId, ...] = Field(
        (), description="jobs whose right to preempt others was used"
    )
    objective: int = Field(0, description="objective of this plan; higher is better")
    greedy: int = Field(0, description="objective of greedy's plan of the same view")
    bound: int = Field(0, description="upper bound of the objective")
    solve_ms: float = Field(0.0, ge=0, description="wall ms in the solver's process")
    terms: dict[str, float] = Field(default_factory=dict, description="parts of the objective")
