"""What executors say: one record per poll, at least once; allocation ids make repeats harmless."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Local, Model, Name
from shared.contracts.nodes import Backend


class NodeRegistered(Model):
    """A node is there, with this inventory, under a new incarnation."""

    kind: Literal["node_registered"] = "node_registered"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(min_length=1, max_length=64, description="new at each start")
    backend: Backend = Field(description="how workers run there")
    gpu_type: Name = Field(description="its GPU type")
    gpus: int = Field(ge=0, le=64, description="its GPUs, in devices")
    cpus: float = Field(ge=0, le=4096, description="its cores")
    mem_gib: float = Field(ge=0, le=65536, description="its memory, GiB")
    rack: str = Field("", max_length=64, description="its rack")
    labels: dict[str, Annotated[str, Field(max_length=256)]] = Field(
        default_factory=dict, max_length=32, description="what selectors match"
    )


class NodeLeaving(Model):
    """The executor of a node stops on purpose."""

    kind: Literal["node_leaving"] = "node_leaving"
    node_id: Name = Field(description="the node")
    incarnation: str = Field(max_length=64, description="the one that leaves")


class WorkerReady(Model):
    """A worker is prepared and waits for the go."""

    kind: Literal["worker_ready"] = "worker_ready"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="whose worker")


class WorkerRefused(Model):
    """The node cannot run the worker: a GPU is busy, the program is missing, ..."""

    kind: Literal["worker_refused"] = "worker_refused"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="whose worker")
    reason: str = Field(max_length=1024, description="machine-readable: snake_case, then detail")


class WorkerExited(Model):
    """A worker's program ended by itself, or its node's executor died and left it behind."""

    kind: Literal["worker_exited"] = "worker_exited"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="whose worker")
    exit_code: int = Field(
        ge=-(2**31), lt=2**31, description="128 + signal where a signal ended it"
    )
    ran_ms: int = Field(0, ge=0, lt=2**53, description="wall ms from go to end")


class WorkerStopped(Model):
    """A worker is gone because placement asked for it; also said of a worker never known."""

    kind: Literal["worker_stopped"] = "worker_stopped"
    allocation_id: str = Field(max_length=96, description="`partition/seq/index/rank`")
    job_id: str = Field(max_length=96, description="whose worker")
    exit_code: int | None = Field(None, ge=-(2**31), lt=2**31, description="absent: it never ran")


Report = Annotated[
    NodeRegistered | NodeLeaving | WorkerReady | WorkerRefused | WorkerExited | WorkerStopped,
    Field(discriminator="kind"),
]


class ExecutorReported(Model):
    """One poll of one executor, in the order in which things happened."""

    TYPE: ClassVar[str] = "executor.reported.v1"
    executor_id: str = Field(min_length=1, max_length=64, description="the process")
    reports: tuple[Report, ...] = Field(max_length=4096, description="oldest first")


class Heartbeats(Model):
    """Soft: these nodes are alive. Losing or repeating one is harmless."""

    TYPE: ClassVar[str] = "nodes.alive.v1"
    executor_id: str = Field(description="the process")
    at: int = Field(description="ms, the executor's clock")
    nodes: dict[str, str] = Field(description="node id to incarnation")


class IterationTimes(Model):
    """Soft: how long the last iterations of a worker took."""

    job_id: str = Field(max_length=96, description="whose worker")
    allocation_id: str = Field(description="`partition/seq/index/rank`")
    node_id: str = Field(description="the node")
    rank: int = Field(ge=0, description="of the worker in its gang")
    iteration_s: tuple[float, ...] = Field(max_length=1024, description="oldest first, cluster s")


class TelemetryReported(Model):
    """Soft: one poll of one executor's iteration times."""

    TYPE: ClassVar[str] = "workers.iterated.v1"
    executor_id: str = Field(description="the process")
    at: int = Field(description="ms, the executor's clock")
    times: tuple[IterationTimes, ...] = Field(description="by worker")


class LogLines(Model):
    """Soft: lines that a worker printed."""

    TYPE: ClassVar[str] = "worker.printed.v1"
    job_id: str = Field(max_length=96, description="whose worker")
    tenant: str = Field(description="whose job")
    rank: int = Field(ge=0, description="of the worker in its gang")
    attempt: int = Field(ge=1, description="which time it runs")
    first_line: int = Field(ge=0, description="number of the first line")
    lines: tuple[str, ...] = Field(max_length=1000, description="oldest first")


class NodesSilent(Local):
    """Placement's shell has not heard of these nodes for longer than their lease."""

    nodes: dict[str, str] = Field(description="node id to incarnation")
    silent_s: float = Field(ge=0, description="wall s without a heartbeat")


class WorkersIterated(Local):
    """Fail-slow's shell read these iteration times from the soft topic."""

    times: tuple[IterationTimes, ...] = Field(description="by worker")
