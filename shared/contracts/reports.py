"""Reports of executors: one record per poll, at least once; repeated reports have no effect."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Local, Model, Name
from shared.contracts.nodes import Backend


class NodeRegistered(Model):
    """A node registered its inventory under a new incarnation."""

    kind: Literal["node_registered"] = "node_registered"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(
        min_length=1, max_length=64, description="id that is new at each start"
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


class WorkerRefused(Model):
    """The node cannot run the worker: a GPU is busy, the program is missing, ..."""

    kind: Literal["worker_refused"] = "worker_refused"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="job of the worker")
    reason: str = Field(max_length=1024, description="machine-readable: snake_case, then detail")


class WorkerExited(Model):
    """A worker's program ended by itself, or its executor died and left it behind."""

    kind: Literal["worker_exited"] = "worker_exited"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="job of the worker")
    exit_code: int = Field(ge=-(2**31), lt=2**31, description="128 + signal if a signal ended it")
    ran_ms: int = Field(0, ge=0, lt=2**53, description="wall ms from start to end")


class WorkerStopped(Model):
    """A worker stopped as placement requested; also reported of an unknown worker."""

    kind: Literal["worker_stopped"] = "worker_stopped"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="job of the worker")
    exit_code: int | None = Field(None, ge=-(2**31), lt=2**31, description="absent: it never ran")


Report = Annotated[
    NodeRegistered | NodeLeaving | WorkerReady | WorkerRefused | WorkerExited | WorkerStopped,
    Field(discriminator="kind"),
]


class ExecutorReported(Model):
    """The reports of one poll of one executor, in order."""

    TYPE: ClassVar[str] = "executor.reported.v1"
    executor_id: str = Field(min_length=1, max_length=64, description="the executor process")
    reports: tuple[Report, ...] = Field(max_length=4096, description="oldest first")


class Heartbeats(Model):
    """Heartbeats of nodes (soft): a lost or repeated one has no effect."""

    TYPE: ClassVar[str] = "nodes.alive.v1"
    executor_id: str = Field(description="the executor process")
    at: int = Field(description="ms, by the executor's clock")
    nodes: dict[str, str] = Field(description="node id to incarnation")


class IterationTimes(Model):
    """Durations of the last iterations of a worker (soft)."""

    job_id: str = Field(max_length=96, description="job of the worker")
    allocation_id: str = Field(description="`partition/seq/index/rank`")
    node_id: str = Field(description="the node")
    rank: int = Field(ge=0, description="rank of the worker in its gang")
    iteration_s: tuple[float, ...] = Field(max_length=1024, description="oldest first, cluster s")


class TelemetryReported(Model):
    """Iteration times of one poll of one executor (soft)."""

    TYPE: ClassVar[str] = "workers.iterated.v1"
    executor_id: str = Field(description="the executor process")
    at: int = Field(description="ms, by the executor's clock")
    times: tuple[IterationTimes, ...] = Field(description="iteration times by worker")


class LogLines(Model):
    """Lines of a worker's output (soft)."""

    TYPE: ClassVar[str] = "worker.printed.v1"
    job_id: str = Field(max_length=96, description="job of the worker")
    tenant: str = Field(description="tenant that owns the job")
    rank: int = Field(ge=0, description="rank of the worker in its gang")
    attempt: int = Field(ge=1, description="number of the attempt")
    first_line: int = Field(ge=0, description="number of the first line")
    lines: tuple[str, ...] = Field(max_length=1000, description="oldest first")


class NodesSilent(Local):
    """Nodes without a heartbeat for longer than their lease, from placement's shell."""

    nodes: dict[str, str] = Field(description="node id to incarnation")
    silent_s: float = Field(ge=0, description="wall s without a heartbeat")


class WorkersIterated(Local):
    """Iteration times that fail-slow's shell read from the topic `telemetry`."""

    times: tuple[IterationTimes, ...] = Field(description="iteration times by worker")
