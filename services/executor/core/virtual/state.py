"""State of an executor for one pool: the pool's jobs, and the workers on its own nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from services.executor.core.virtual.inventory import InventoryNode
from shared.contracts.injections import FaultInjected
from shared.contracts.job_spec import JobSpec, Spread
from shared.contracts.reports import Report
from shared.contracts.terms import PoolTerms


class WorkerPhase(StrEnum):
    PREPARING = "preparing"
    READY = "ready"
    RUNNING = "running"
    STOPPING = "stopping"
    GONE = "gone"


@dataclass(slots=True)
class TrackedJob:
    """A job that has not ended, as of its last JobEnqueued."""

    tenant: str
    spec: JobSpec
    started_at: int = 0
    done_s: float = 0.0
    """Cluster seconds of work that earlier starts saved in a checkpoint."""
    workers: int = 1
    """Workers of its last start."""
    gpu_types: tuple[str, ...] = ()
    """GPU types of its last start, each once."""
    spread: Spread | None = None
    """Links between the nodes of its last start; None: it was on one node."""
    series: str = ""
    """Name of jobs that do the same work."""
    resumes: bool = False
    """An earlier start was preempted: the next one goes on, after the restart cost."""


@dataclass(slots=True)
class Worker:
    """One allocation on an own node, until the ledger releases it."""

    allocation_id: str
    job_id: str
    attempt: int
    node_id: str
    gpus: tuple[int, ...]
    gpu_milli: int
    phase: WorkerPhase = WorkerPhase.PREPARING
    released: bool = False
    last_report: Report | None = None
    """Report of its end, repeated on request."""

    @property
    def lives(self) -> bool:
        return self.phase is not WorkerPhase.GONE


@dataclass(slots=True)
class ExecutorState:
    """Changed by the functions of this package alone; stored in snapshots."""

    partition: int
    nodes: dict[str, InventoryNode]
    time_scale: float = 1.0
    lease_s: float = 30.0
    backends: frozenset[str] = frozenset()
    jobs: dict[str, TrackedJob] = field(default_factory=dict)
    workers: dict[str, Worker] = field(default_factory=dict)
    of_job: dict[str, list[str]] = field(default_factory=dict)
    use: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    """Thousandths of an own GPU held by each living worker."""
    joined: dict[str, str] = field(default_factory=dict)
    """Incarnation of each own node in the ledger."""
    generations: dict[str, int] = field(default_factory=dict)
    """Highest generation of each own node, in the ledger or sent."""
    terms: PoolTerms | None = None
    """Present terms of leases, as of the placement ledger; nothing registers before they are."""
    gpu_types: dict[str, str] = field(default_factory=dict)
    """GPU type of every node of the pool."""
    racks: dict[str, str] = field(default_factory=dict)
    """Rack of every node of the pool."""
    own_incarnations: dict[str, str] = field(default_factory=dict)
    """Incarnation of each own node in this process; empty while it only folds."""
    base: str = ""
    """First part of the incarnations of this process; empty while it only folds."""
    injections: dict[str, FaultInjected] = field(default_factory=dict)
    """Faults that are injected, by node; also on nodes of other executors, which gangs share."""
    rejoins: int = 0
    rejoining: set[str] = field(default_factory=set)
    """Own nodes that join anew once no worker lives on them."""
    usurped: set[str] = field(default_factory=set)
    """Own nodes that another executor took over."""

    def workers_of(self, job_id: str, attempt: int) -> list[Worker]:
        ids = self.of_job.get(job_id, ())
        return [w for w in map(self.workers.__getitem__, ids) if w.attempt == attempt]

    def living_workers(self) -> list[Worker]:
        return [worker for worker in self.workers.values() if worker.lives]

    def add(self, worker: Worker) -> None:
        self.workers[worker.allocation_id] = worker
        self.of_job.setdefault(worker.job_id, []).append(worker.allocation_id)

    def drop(self, worker: Worker) -> None:
        del self.workers[worker.allocation_id]
        rest = self.of_job[worker.job_id]
        rest.remove(worker.allocation_id)
        if not rest:
            del self.of_job[worker.job_id]

    def occupy(self, worker: Worker) -> None:
        for gpu in worker.gpus:
            on_gpu = self.use.setdefault((worker.node_id, gpu), {})
            on_gpu[worker.allocation_id] = worker.gpu_milli

    def vacate(self, worker: Worker) -> None:
        worker.phase = WorkerPhase.GONE
        for gpu in worker.gpus:
            on_gpu = self.use.get((worker.node_id, gpu), {})
            on_gpu.pop(worker.allocation_id, None)

    def busy_gpus(self, worker: Worker) -> Iterator[int]:
        """Yield the worker's GPUs on which others leave too little room."""
        for gpu in worker.gpus:
            used = sum(self.use.get((worker.node_id, gpu), {}).values())
            if used + worker.gpu_milli > 1000:
                yield gpu

    def own_nodes(self, node_ids: Iterable[str]) -> list[InventoryNode]:
        return [self.nodes[name] for name in node_ids if name in self.nodes]
