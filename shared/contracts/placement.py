"""Which GPUs a job gets, and its life on them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Event, JobId, Local, Model, event
from shared.contracts.jobs import JobSpec
from shared.contracts.ranking import Ranked


class Allocation(Model):
    """One worker's lease on named GPUs; its id is `place of JobPlaced/rank`."""

    rank: int = Field(ge=0, description="of the worker in its gang")
    node_id: str = Field(description="the node")
    gpus: tuple[int, ...] = Field((), description="indices of its GPUs on the node")
    gpu_milli: int = Field(1000, ge=0, le=1000, description="thousandths of each of these GPUs")
    cpus: float = Field(0.0, ge=0, description="cores")
    mem_gib: float = Field(0.0, ge=0, description="GiB")


@event
class JobEnqueued(Event):
    """Placement knows the job; it waits for GPUs."""

    TYPE: ClassVar[str] = "job.enqueued.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    attempt: int = Field(1, ge=1, description="counts every time it waits anew")
    submitted_at: int = Field(description="ms, when admission first met it")
    array_index: int | None = Field(None, description="index in its array")
    spec: JobSpec = Field(description="as asked for")
    avoid_nodes: tuple[str, ...] = Field((), description="nodes where an attempt failed")


@event
class RanksNoted(Event):
    """Placement took note of the order that priority advises."""

    TYPE: ClassVar[str] = "ranks.noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    base_policy: str = Field("", description="who ranked")
    model_sha256: str = Field("", description="of the learned policy; empty: the base decided")
    ranked_at: int = Field(description="ms: `at` of the rank")
    ranked: tuple[Ranked, ...] = Field(description="best first")
    running: tuple[Ranked, ...] = Field((), description="jobs that hold GPUs, by the same scores")


SolverStatus = Literal["", "optimal", "feasible", "kept_greedy", "late", "died", "refused"]
"""`kept_greedy`: the solver found nothing better than greedy's plan, which is taken. The last three
had no plan of use (too late, no process, against the rules): greedy planned the round alone."""


@event
class JobPlaced(Event):
    """The gang has its GPUs: one allocation per worker. Executors prepare."""

    TYPE: ClassVar[str] = "job.placed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=1, description="which time it runs")
    allocations: tuple[Allocation, ...] = Field(min_length=1, description="one per worker")
    waited_ms: int = Field(ge=0, description="since it began to wait")
    policy: str = Field(description="what decided: order and placement")
    score: float | None = Field(None, description="its rank's score; absent: unranked")
    model_sha256: str = Field("", description="of the learned policy that ranked it; empty: none")
    terms: dict[str, float] = Field(default_factory=dict, description="what decided, by name")
    solver: SolverStatus = Field("", description="of a contended round; empty: none was asked")


HoldReason = Literal[
    "no_capacity",
    "no_node_fits",
    "behind_reservation",
    "behind_head",
    "reserved_for_head",
    "rank_missing",
    "draining",
]


@event
class JobHeld(Event):
    """The pool cannot place the job now; said when the reason changes, with its numbers."""

    TYPE: ClassVar[str] = "job.held.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    reason: HoldReason = Field(description="machine-readable")
    short_gpus: float = Field(0.0, ge=0, description="GPUs missing for the whole gang, in devices")
    detail: dict[str, float | str] = Field(default_factory=dict, description="the numbers")


@event
class WorkersReady(Event):
    """Some workers of a gang are prepared; the go comes when all are."""

    TYPE: ClassVar[str] = "workers.ready.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the job")
    attempt: int = Field(ge=1, description="which time it runs")
    ranks: tuple[int, ...] = Field(description="workers that became ready")


@event
class JobStarted(Event):
    """All workers are ready: this is the go."""

    TYPE: ClassVar[str] = "job.started.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=1, description="which time it runs")
    gpus: float = Field(0.0, ge=0, description="GPUs of the gang as placed, in devices")


@event
class JobStartFailed(Event):
    """A worker refused or the gang was not ready in time; all are stopped, the job waits again."""

    TYPE: ClassVar[str] = "job.start-failed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=1, description="which time it ran")
    node_ids: tuple[str, ...] = Field(description="nodes to avoid")
    reason: str = Field(description="machine-readable: snake_case")


@event
class JobPreempted(Event):
    """A running job must stop; its GPUs are free only when the stop is reported."""

    TYPE: ClassVar[str] = "job.preempted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job that stops")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=1, description="which time it ran")
    reason: Literal["higher_class", "spot_reclaimed", "outranked", "node_drained", "node_lost"] = (
        Field(description="machine-readable")
    )
    by_job_id: str = Field("", description="the job it makes room for")
    lost_work_s: float = Field(0.0, ge=0, description="cluster s since the last checkpoint")
    terms: dict[str, float] = Field(default_factory=dict, description="what decided, by name")


MoveReason = Literal["drain", "slow_node", "defragment", "balance"]


@event
class JobMigrated(Event):
    """A running job must stop because it goes on elsewhere, where GPUs are kept for it.

    It takes the place of JobPreempted: the gang stops with its grace, goes on from its last
    checkpoint, and JobRequeued says when it waits for what was kept.
    """

    TYPE: ClassVar[str] = "job.migrated.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job that moves")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=1, description="which time it ran")
    reason: MoveReason = Field(description="machine-readable")
    by_job_id: str = Field("", description="who gets what it leaves, where somebody does")
    from_nodes: tuple[str, ...] = Field(description="where it ran")
    to_nodes: tuple[str, ...] = Field(description="where it will go on")
    target: tuple[Allocation, ...] = Field(min_length=1, description="what is kept for it")
    lost_work_s: float = Field(0.0, ge=0, description="cluster s since the last checkpoint")


@event
class JobResized(Event):
    """A running elastic job must stop because it goes on with more or fewer workers.

    By the same path as JobMigrated: stop, checkpoint, and a start on what was kept.
    """

    TYPE: ClassVar[str] = "job.resized.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job that grows or shrinks")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=1, description="which time it ran")
    reason: Literal["grow", "shrink"] = Field(description="machine-readable")
    from_workers: int = Field(ge=1, description="workers it ran with")
    to_workers: int = Field(ge=1, description="workers it will go on with")
    target: tuple[Allocation, ...] = Field(min_length=1, description="what is kept for it")
    by_job_id: str = Field("", description="the job it makes room for, if it shrinks")
    lost_work_s: float = Field(0.0, ge=0, description="cluster s since the last checkpoint")


@event
class JobStopRequested(Event):
    """A placed job must stop for a reason other than preemption."""

    TYPE: ClassVar[str] = "job.stop-requested.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=1, description="which time it runs")
    reason: Literal["cancelled", "start_failed", "worker_failed"] = Field(description="why")
    detail: str = Field("", description="of a cancel: the reason as given")


@event
class AllocationReleased(Event):
    """The worker is gone and its GPUs are free again."""

    TYPE: ClassVar[str] = "allocation.released.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="whose worker")
    tenant: str = Field("", description="whose job")
    attempt: int = Field(ge=1, description="which time it ran")
    allocation_id: str = Field(description="`partition/seq/index/rank`")
    node_id: str = Field(description="the node")
    reason: Literal["exited", "stopped", "refused", "lease_over"] = Field(description="why")
    exit_code: int | None = Field(None, description="of the worker; absent: it never ran")


@event
class JobRequeued(Event):
    """All GPUs of a preempted, moved, lost or failed start are back; the job waits again."""

    TYPE: ClassVar[str] = "job.requeued.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=2, description="the attempt it waits for")
    reason: str = Field(description="machine-readable: snake_case")
    avoid_nodes: tuple[str, ...] = Field((), description="nodes where an attempt failed")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of the attempt before, wall")


@event
class JobAttemptFailed(Event):
    """The program failed and the retry policy allows another attempt; admission decides when."""

    TYPE: ClassVar[str] = "job.attempt-failed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=1, description="which time it ran")
    exit_code: int | None = Field(None, description="of the first worker that failed")
    node_ids: tuple[str, ...] = Field((), description="where it ran")
    reason: str = Field(description="machine-readable: snake_case")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of this attempt, wall")


@event
class JobSucceeded(Event):
    """The end: every worker exited with 0."""

    TYPE: ClassVar[str] = "job.succeeded.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=1, description="the attempt that did it")
    ran_ms: int = Field(0, ge=0, description="wall ms from start to end")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of this attempt, wall")


@event
class JobFailed(Event):
    """The end: no attempt is left."""

    TYPE: ClassVar[str] = "job.failed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    attempt: int = Field(ge=1, description="the last attempt")
    exit_code: int | None = Field(None, description="of the first worker that failed")
    reason: str = Field(description="machine-readable: snake_case")
    ran_ms: int = Field(0, ge=0, description="wall ms of the last attempt")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of this attempt, wall")


@event
class JobCancelled(Event):
    """The end: somebody asked for it. Admission says it of a job it had not let in yet."""

    TYPE: ClassVar[str] = "job.cancelled.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission", "placement")
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the job")
    tenant: str = Field(description="whose")
    attempt: int = Field(1, ge=1, description="the attempt that was cut short")
    reason: str = Field("", description="as given")
    ran_ms: int = Field(0, ge=0, description="wall ms of the last attempt")
    gpu_s: float = Field(0.0, ge=0, description="GPU-seconds of this attempt, wall")


@event
class RoundEnded(Event):
    """A placement round left jobs in line; the next one comes when something changes."""

    TYPE: ClassVar[str] = "round.ended.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    waiting: int = Field(ge=0, description="jobs left in line")
    unfinished: bool = Field(False, description="cut short by its bounds: another one follows")
    again_at: int | None = Field(None, description="ms: worth another look even if nothing changes")


@event
class RoundOpened(Event):
    """A contended round waits for the solver; until its answer, or `until`, nothing starts."""

    TYPE: ClassVar[str] = "round.opened.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    waiting: int = Field(ge=0, description="jobs in line")
    until: int = Field(description="ms: without an answer greedy plans the round")


class PlannedStart(Model):
    """A waiting job and its slots."""

    job_id: JobId = Field(description="the job")
    attempt: int = Field(ge=1, description="which time it would run")
    allocations: tuple[Allocation, ...] = Field(min_length=1, description="one per worker")
    terms: dict[str, float] = Field(default_factory=dict, description="of this job, by name")


class PlannedStop(Model):
    """A running job that makes room for a waiting one."""

    job_id: JobId = Field(description="the job that stops")
    attempt: int = Field(ge=1, description="which time it runs")
    by_job_id: JobId = Field(description="the job it makes room for")


class PlanReady(Local):
    """The solver's answer to an open round; what no longer holds of it is dropped."""

    at_seq: int = Field(description="seq of the record whose RoundOpened it answers")
    status: SolverStatus = Field(description="how it came about")
    starts: tuple[PlannedStart, ...] = Field((), description="in the order of the line")
    stops: tuple[PlannedStop, ...] = Field((), description="victims")
    moves: tuple[PlannedStart, ...] = Field(
        (), description="victims that go on elsewhere, where the rules let them; also in `stops`"
    )
    weighed: tuple[JobId, ...] = Field((), description="jobs whose right to stop others it used")
    objective: int = Field(0, description="of this plan; higher is better")
    greedy: int = Field(0, description="of greedy's plan of the same view")
    bound: int = Field(0, description="no plan of the model is above it")
    solve_ms: float = Field(0.0, ge=0, description="wall ms in the solver's process")
    terms: dict[str, float] = Field(default_factory=dict, description="parts of the objective")
