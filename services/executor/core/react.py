"""Each fact of the placement ledger, folded, and what is to be done about it here."""

from __future__ import annotations

from functools import cache

from services.executor.core.effects import (
    Effect,
    ForgetWorker,
    PrepareWorker,
    SendReport,
    StartWorker,
    StopWorker,
    WorkerSpec,
)
from services.executor.core.inventory import ADDRESS_LABEL
from services.executor.core.membership import on_joined, on_lost
from services.executor.core.state import ExecutorState, TrackedJob, Worker, WorkerPhase
from services.executor.core.stopping import stop
from shared.contracts.base import Event
from shared.contracts.checkpoint import kept_ms, restart_ms, speed
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import (
    Allocation,
    AllocationReleased,
    JobCancelled,
    JobEnqueued,
    JobFailed,
    JobMigrated,
    JobPlaced,
    JobPreempted,
    JobResized,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
)
from shared.contracts.reports import WorkerRefused, WorkerStopped
from shared.ledger.decider import Fact

ACTED_ON = frozenset(
    cls.TYPE.rpartition(".")[0]
    for cls in (
        AllocationReleased,
        JobCancelled,
        JobEnqueued,
        JobFailed,
        JobMigrated,
        JobPlaced,
        JobPreempted,
        JobResized,
        JobStarted,
        JobStartFailed,
        JobStopRequested,
        JobSucceeded,
        NodeJoined,
        NodeLost,
    )
)


@cache
def acts_on(wire_type: str) -> bool:
    """Whether it matters here, in any version; all else need not even be decoded."""
    return wire_type.rpartition(".")[0] in ACTED_ON


def react(lane: ExecutorState, fact: Fact) -> list[Effect]:
    """Fold the fact. While a process only catches up it drops what this returns."""
    match fact.event:
        case JobPlaced() as e:
            return _on_placed(lane, fact, e)
        case JobStarted() as e:
            return _on_started(lane, fact, e)
        case JobPreempted() | JobMigrated() | JobResized() as e:
            return _on_set_back(lane, fact, e)
        case JobStopRequested() | JobStartFailed() as e:
            return stop(lane.of(e.job_id, e.attempt))
        case AllocationReleased() as e:
            return _on_released(lane, e)
        case NodeLost() as e:
            return on_lost(lane, e)
        case other:
            _note(lane, other)
    return []


def _note(lane: ExecutorState, event: Event) -> None:
    """Facts that ask for nothing now, but must be known later."""
    match event:
        case JobEnqueued() as e:
            lane.jobs[e.job_id] = TrackedJob(e.tenant, e.spec, e.array_index)
        case JobSucceeded() | JobFailed() | JobCancelled() as e:
            lane.jobs.pop(e.job_id, None)
        case NodeJoined() as e:
            on_joined(lane, e)
            lane.gpu_types[e.node_id] = e.gpu_type
            lane.addresses[e.node_id] = e.labels.get(ADDRESS_LABEL, "127.0.0.1")
        case _:
            pass


def _on_placed(lane: ExecutorState, fact: Fact, e: JobPlaced) -> list[Effect]:
    job = lane.jobs.get(e.job_id)
    if job is not None:
        job.workers = len(e.allocations)
        found = {lane.gpu_types.get(allocation.node_id, "") for allocation in e.allocations}
        job.gpu_types = tuple(sorted(found))
    effects: list[Effect] = []
    for allocation in e.allocations:
        allocation_id = f"{fact.place}/{allocation.rank}"
        if allocation.node_id not in lane.nodes or allocation_id in lane.workers:
            continue
        worker = Worker(
            allocation_id,
            e.job_id,
            e.attempt,
            allocation.node_id,
            allocation.gpus,
            allocation.gpu_milli,
            job.spec.grace_s if job else 0.0,
        )
        lane.add(worker)
        effects += _take(lane, worker, e, allocation, job)
    return effects


def _take(
    lane: ExecutorState,
    worker: Worker,
    e: JobPlaced,
    allocation: Allocation,
    job: TrackedJob | None,
) -> list[Effect]:
    """Prepare the worker, or say why not."""
    if worker.node_id in lane.usurped | lane.rejoining:
        # It is the other's worker, or the new incarnation will say that it never ran.
        worker.phase = WorkerPhase.GONE
        return []
    mine = lane.mine.get(worker.node_id)
    if mine is None or lane.joined.get(worker.node_id) != mine:
        return _gone(worker, WorkerStopped(**_of(worker)))
    problem = _problem(lane, worker, job)
    if job is None or problem:
        return _gone(worker, WorkerRefused(**_of(worker), reason=problem))
    lane.occupy(worker)
    return [PrepareWorker(_worker_spec(lane, worker, e, allocation, job))]


def _problem(lane: ExecutorState, worker: Worker, job: TrackedJob | None) -> str:
    node = lane.nodes[worker.node_id]
    if job is None:
        return "job_unknown: its JobEnqueued is not in the ledger"
    if node.backend not in lane.backends:
        return f"backend_not_allowed: the pool does not let workers run as {node.backend}"
    if any(gpu < 0 or gpu >= node.gpus for gpu in worker.gpus):
        return f"no_such_gpu: the node has {node.gpus}"
    busy = list(lane.busy(worker))
    return f"gpu_busy: {busy}" if busy else ""


def _gone(worker: Worker, report: WorkerStopped | WorkerRefused) -> list[Effect]:
    worker.phase = WorkerPhase.GONE
    worker.last = report
    return [SendReport(report)]


def _of(worker: Worker) -> dict[str, str]:
    return {"allocation_id": worker.allocation_id, "job_id": worker.job_id}


def _worker_spec(
    lane: ExecutorState, worker: Worker, e: JobPlaced, a: Allocation, job: TrackedJob
) -> WorkerSpec:
    master = min(e.allocations, key=lambda allocation: allocation.rank)
    return WorkerSpec(
        allocation_id=worker.allocation_id,
        job_id=e.job_id,
        tenant=e.tenant,
        attempt=e.attempt,
        array_index=job.array_index,
        rank=a.rank,
        world_size=len(e.allocations),
        local_rank=sum(o.node_id == a.node_id and o.rank < a.rank for o in e.allocations),
        node_id=a.node_id,
        gpus=a.gpus,
        gpu_milli=a.gpu_milli,
        gang_nodes=tuple(sorted({o.node_id for o in e.allocations})),
        master_address=lane.addresses.get(master.node_id, "127.0.0.1"),
        job_spec=job.spec,
        gpu_types=job.gpu_types,
        done_s=job.done_s,
        restart_s=job.spec.simulated.restart_s if job.resumes and job.spec.simulated else 0.0,
    )


def _on_started(lane: ExecutorState, fact: Fact, e: JobStarted) -> list[Effect]:
    if job := lane.jobs.get(e.job_id):
        job.started_at = fact.at
    effects: list[Effect] = []
    for worker in lane.of(e.job_id, e.attempt):
        if worker.phase is WorkerPhase.READY:
            worker.phase = WorkerPhase.RUNNING
            effects.append(StartWorker(worker.allocation_id))
    return effects


def _on_set_back(
    lane: ExecutorState, fact: Fact, e: JobPreempted | JobMigrated | JobResized
) -> list[Effect]:
    """It stops, and goes on from its last checkpoint some day."""
    job = lane.jobs.get(e.job_id)
    if job and job.started_at:
        save(job, fact.at, lane.time_scale)
    return stop(lane.of(e.job_id, e.attempt))


def save(job: TrackedJob, at: int, time_scale: float) -> None:
    """The start ends at `at` (ms) and another one goes on from its last checkpoint."""
    began = job.started_at + (restart_ms(job.spec, time_scale) if job.resumes else 0)
    kept = kept_ms(job.spec, max(0, at - began), time_scale)
    job.done_s += kept / 1000 * time_scale * speed(job.spec, job.workers, job.gpu_types)
    job.resumes = True
    job.started_at = 0


def _on_released(lane: ExecutorState, e: AllocationReleased) -> list[Effect]:
    worker = lane.workers.get(e.allocation_id)
    if worker is None:
        return []
    if worker.lives:
        # The lease ran out before the stop was reported: nobody waits for it any more.
        worker.released = True
        worker.phase = WorkerPhase.STOPPING
        return [StopWorker(worker.allocation_id, 0.0)]
    lane.drop(worker)
    return [ForgetWorker(worker.allocation_id)]
