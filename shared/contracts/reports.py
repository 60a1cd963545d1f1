"""Reports of executors: one record per poll, at least once; repeated reports have no effect."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from shared.contracts.base import Local, Model, Name
from shared.contracts.failures import OutputLine
from shared.contracts.iterations import IterationColumns, check_columns
from shared.contracts.measurements import MeasuredNode
from shared.contracts.nodes import Backend, Fencing


class NodeRegistered(Model):
    """A node registered its inventory under a new incarnation."""

    kind: Literal["node_registered"] = "node_registered"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(
        min_length=1, max_length=64, description="uuid of this life of the node"
    )
    backend: Backend = Field(description="how its workers run")
    gpu_type: Name = Field(description="its GPU type")
    gpus: int = Field(ge=0, le=64, description="its GPUs, in devices")
    cpus: float = Field(ge=0, le=4096, description="its CPU cores")
    mem_gib: float = Field(ge=0, le=65536, description="its memory, GiB")
    rack: str = Field("", max_length=64, description="its rack")
    labels: dict[str, Annotated[str, Field(max_length=256)]] = Field(
        default_factory=dict, max_length=32, description="labels that node selectors match"
    )
    generation: int = Field(
        0, ge=0, lt=2**53, description="higher than that of every earlier incarnation"
    )
    boot_id: str = Field("", max_length=64, description="id of the machine's boot")
    pid_namespace: str = Field("", max_length=64, description="id of its workers' pid namespace")
    hardware: str = Field("", max_length=64, description="hash of the machine's identity, or empty")
    unusable_gpus: tuple[Annotated[int, Field(ge=0, lt=64)], ...] = Field(
        (), max_length=64, description="GPUs that are not to be offered"
    )
    terms_id: str = Field("", max_length=64, description="terms that the node works under")
    fencing: Fencing = Field("kernel", description="who ends a worker whose step died")
    limits: str = Field("", max_length=64, description="cgroup version that enforces limits")


class NodeLeaving(Model):
    """The executor of a node is shutting down."""

    kind: Literal["node_leaving"] = "node_leaving"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(max_length=64, description="the incarnation that leaves")


class WorkerReady(Model):
    """A worker is prepared and waits for the start of its gang."""

    kind: Literal["worker_ready"] = "worker_ready"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="job of the worker")
    master_port: int | None = Field(None, ge=1, le=65535, description="free port, of rank 0")


class WorkerRefused(Model):
    """The node cannot run the worker: a GPU is busy, the program is missing, ..."""

    kind: Literal["worker_refused"] = "worker_refused"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="job of the worker")
    reason: str = Field(max_length=1024, description="machine-readable: snake_case, then detail")
    detail: str = Field("", max_length=1024, description="the value and the rule")
    output: tuple[OutputLine, ...] = Field(
        (), max_length=20, description="last lines, oldest first"
    )
    permanent: bool = Field(False, description="the same start fails again on every node")


class WorkerExited(Model):
    """A worker's program ended by itself, or its executor died and left it behind."""

    kind: Literal["worker_exited"] = "worker_exited"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="job of the worker")
    exit_code: int = Field(ge=-(2**31), lt=2**31, description="128 + signal if a signal ended it")
    ran_ms: int = Field(0, ge=0, lt=2**53, description="wall ms from start to end")
    reason: str = Field(
        "", max_length=64, description="machine-readable: walltime, step_lost, fenced, ..."
    )
    detail: str = Field("", max_length=1024, description="the value and the rule")
    output: tuple[OutputLine, ...] = Field(
        (), max_length=20, description="last lines, oldest first"
    )
    permanent: bool = Field(False, description="the same start fails again on every node")


class WorkerStopped(Model):
    """A worker stopped as placement requested; also reported of an unknown worker."""

    kind: Literal["worker_stopped"] = "worker_stopped"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="job of the worker")
    exit_code: int | None = Field(None, ge=-(2**31), lt=2**31, description="absent: it never ran")


class WorkerStuck(Model):
    """A worker was killed and does not die; its GPUs stay held."""

    kind: Literal["worker_stuck"] = "worker_stuck"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="job of the worker")
    detail: str = Field("", max_length=1024, description="what still lives")


class NodeTermsReported(Model):
    """No deadline of older terms lies ahead on the node any more."""

    kind: Literal["node_terms_reported"] = "node_terms_reported"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(max_length=64, description="the incarnation that applied them")
    terms_id: str = Field(max_length=64, description="the terms")


Report = Annotated[
    NodeRegistered
    | NodeLeaving
    | WorkerReady
    | WorkerRefused
    | WorkerExited
    | WorkerStopped
    | WorkerStuck
    | NodeTermsReported,
    Field(discriminator="kind"),
]


class ExecutorReported(Model):
    """The reports of one poll of one executor, in order."""

    TYPE: ClassVar[str] = "executor.reported.v1"
    PARTS: ClassVar[str] = "reports"
    executor_id: str = Field(min_length=1, max_length=64, description="the executor process")
    reports: tuple[Report, ...] = Field(max_length=4096, description="oldest first")


class WorkerCheckpointed(Model):
    """A worker's program said that it has written a checkpoint."""

    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="job of the worker")
    ran_ms: int = Field(ge=0, lt=2**53, description="wall ms from the worker's start to then")
    step: int = Field(0, ge=0, lt=2**53, description="its step, as the job named it")


class CheckpointsReported(Model):
    """Checkpoints that jobs reported. One that is lost or repeated does no harm.

    Executors send at most one per worker in 5 s, of workers of rank 0 only.
    """

    TYPE: ClassVar[str] = "jobs.checkpointed.v1"
    PARTS: ClassVar[str] = "checkpoints"
    executor_id: str = Field(min_length=1, max_length=64, description="the executor process")
    checkpoints: tuple[WorkerCheckpointed, ...] = Field(max_length=4096, description="oldest first")


class WorkerProgressed(Model):
    """A worker's program said how many iterations it has done, and of how many."""

    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="job of the worker")
    ran_ms: int = Field(ge=0, lt=2**53, description="wall ms from the worker's start to then")
    step: int = Field(ge=0, lt=2**53, description="iterations that are done")
    steps_total: int = Field(ge=1, lt=2**53, description="iterations of the whole training")
    iteration_s: float = Field(
        ge=0, le=1e9, description="mean wall s of an iteration, by the node's clock"
    )


class ProgressReported(Model):
    """The progress of jobs. A report that is lost or repeated does no harm.

    Executors send at most one per worker in 10 s, of workers of rank 0 only.
    """

    TYPE: ClassVar[str] = "jobs.progressed.v1"
    PARTS: ClassVar[str] = "progress"
    executor_id: str = Field(min_length=1, max_length=64, description="the executor process")
    progress: tuple[WorkerProgressed, ...] = Field(max_length=4096, description="oldest first")


class Alive(Model):
    """The heartbeat of one node."""

    incarnation: str = Field(max_length=64, description="the incarnation that lives")
    sent_boot_ms: int | None = Field(
        None,
        ge=0,
        lt=2**63,
        description="CLOCK_BOOTTIME of the node before it was sent; one that is not higher than an "
        "earlier one does not count. Absent: of an old executor, each one counts",
    )


class Heartbeats(Model):
    """Heartbeats of nodes: once acknowledged, they extend the leases of these incarnations."""

    TYPE: ClassVar[str] = "nodes.alive.v2"
    executor_id: str = Field(max_length=64, description="the executor process")
    nodes: dict[str, Alive] = Field(description="by node id")


class HeartbeatsRead(Model):
    """Placement's marker in `heartbeats`: whoever reads it has read all that came before."""

    TYPE: ClassVar[str] = "nodes.read.v1"
    writer: str = Field(max_length=64, description="id of the reader that wrote it")
    n: int = Field(ge=1, description="number of the marker, from 1")


class IterationTimes(IterationColumns):
    """The last iterations of one process of a worker (soft).

    Times are cluster seconds. Executors of earlier releases send `iteration_s` alone, which is then
    the own work of virtual workers.
    """

    job_id: str = Field(max_length=96, description="job of the worker")
    allocation_id: str = Field(description="`partition/seq/index/rank`")
    node_id: str = Field(description="the node")
    rank: int = Field(ge=0, description="rank of the worker in its gang")
    series: str = Field(
        "", max_length=64, description="name of jobs that do the same work; empty: unknown"
    )

    @model_validator(mode="after")
    def _has_equal_columns(self) -> Self:
        check_columns(self)
        return self


class TelemetryReported(Model):
    """Iteration times of one poll of one executor (soft)."""

    TYPE: ClassVar[str] = "workers.iterated.v1"
    executor_id: str = Field(description="the executor process")
    at: int = Field(description="ms, by the executor's clock")
    times: tuple[IterationTimes, ...] = Field(description="iteration times by worker")
    nodes: tuple[MeasuredNode, ...] = Field(
        (), max_length=1024, description="nodes that measured themselves"
    )


class LogLines(Model):
    """Lines of a worker's output (soft)."""

    TYPE: ClassVar[str] = "worker.printed.v1"
    job_id: str = Field(max_length=96, description="job of the worker")
    tenant: str = Field(description="tenant that owns the job")
    rank: int = Field(ge=0, description="rank of the worker in its gang")
    attempt: int = Field(ge=1, description="number of the attempt")
    first_line: int = Field(ge=0, description="number of the first line")
    lines: tuple[str, ...] = Field(max_length=1000, description="oldest first")
    is_last: bool = Field(False, description="the worker has ended, and no line follows")
    open_line: str = Field("", description="state of the next line, which has no end yet")


class SilentNode(Model):
    """A node without a heartbeat, as of a marker that placement's shell read."""

    node_id: str = Field(description="the node")
    incarnation: str = Field(description="the incarnation that is silent")
    silent_ms: int = Field(ge=0, description="ms without a heartbeat")
    terms_id: str = Field("", description="oldest terms in use since the count began")


class NodesSilent(Local):
    """Nodes without heartbeats, from placement's shell, which has read all before `offset`."""

    PARTS: ClassVar[str] = "nodes"
    nodes: tuple[SilentNode, ...] = Field(description="silent nodes")
    offset: int = Field(0, ge=0, description="next offset of `heartbeats`")


class NodesHeard(Local):
    """Suspected nodes that sent a heartbeat, from placement's shell."""

    nodes: dict[str, str] = Field(description="node id to incarnation")


class WorkersIterated(Local):
    """Medians of reports that fail-slow's shell read; own work is without `delay_s`."""

    times: tuple[IterationTimes, ...] = Field(description="iteration times by worker")
    noise: float = Field(
        0.0, ge=0, description="least spread to assume among the workers, relative to own work"
    )
    notes: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="sentences about nodes that measured themselves"
    )
