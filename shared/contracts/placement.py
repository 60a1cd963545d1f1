"""Placement: the queue of a pool, its rounds, and the GPUs that a job gets."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Event, JobId, Model, event
from shared.contracts.job_spec import JobSpec
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
class ArrayProgramNoted(Event):
    """Placement recorded, once, the program that the jobs of an array run."""

    TYPE: ClassVar[str] = "array.program-noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    PUBLIC: ClassVar[bool] = False
    job_id: JobId = Field(description="the array")
    tenant: str = Field(description="tenant that owns the job")
    command: tuple[str, ...] = Field((), description="argv of each worker; private")
    env: dict[str, str] = Field(
        default_factory=dict, description="plain values or secret://name; private"
    )


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
    changes_follow: bool = Field(
        False,
        description="it names all jobs of the order, also those of no use now, and `RanksChanged` "
        "events follow, which name changes to it",
    )


@event
class RanksChanged(Event):
    """Placement recorded what changed in the order that priority recommends."""

    TYPE: ClassVar[str] = "ranks.changed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    PUBLIC: ClassVar[bool] = False
    pool: str = Field("", description="the pool")
    number: int = Field(ge=1, description="`number` of the QueueReranked event")
    ranked_at: int = Field(description="ms, `at` of the QueueReranked record")
    ranked: tuple[Ranked, ...] = Field((), description="waiting jobs, new or with other values")
    left_ranked: tuple[JobId, ...] = Field((), description="waiting jobs that are not named now")
    running: tuple[Ranked, ...] = Field((), description="jobs with GPUs, new or with other values")
    left_running: tuple[JobId, ...] = Field((), description="jobs with GPUs, not named now")


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
    validates: bool = Field(False, description="the job measures nodes, by `validates` of its spec")
    preemptible: bool = Field(False, description="a job of the class `system` may stop it")


HoldReason = Literal[
    "no_capacity",
    "no_node_fits",
    "behind_reservation",
    "behind_head",
    "reserved_for_head",
    "draining",
    "disk_full",
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


DEFERRALS_FROM = 1
"""First release that reads `JobStopDeferred`: until `berth upgrade finish` none is recorded."""


@event
class JobStopDeferred(Event):
    """Rank would stop a running job for a waiting one, which a rule still protects.

    Nothing is reserved: at `until` the job that then leads is served. It is recorded once per
    victim, and again where the waiting job still waits after `until`.
    """

    TYPE: ClassVar[str] = "job.stop-deferred.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "job_id"
    job_id: JobId = Field(description="the running job")
    tenant: str = Field(description="tenant that owns the job")
    attempt: int = Field(ge=1, description="number of the attempt")
    by_job_id: str = Field(description="the waiting job")
    until: int = Field(description="ms, when all of its victims may be stopped at the earliest")
    rule: str = Field(description="machine-readable: the rule that protects the job until then")
    victims: int = Field(ge=1, description="running jobs that would be stopped for it")


@event
class PreemptionPaused(Event):
    """Stops by rank and migrations have spent the pool's loss budget; the pool makes none until
    GPU time in use has earned some of it back. Appended once per pause."""

    TYPE: ClassVar[str] = "preemption.paused.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"
    pool: str = Field("", description="the pool")
    spent_gpu_s: float = Field(ge=0, description="cluster GPU-seconds that stops have cost")
    budget_gpu_s: float = Field(ge=0, description="cluster GPU-seconds that they may cost at once")
    until: int | None = Field(
        None, description="ms, when it is open again at the present use; absent: not foreseeable"
    )


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
