"""Folds each fact of the placement ledger and returns its effects on the own nodes."""

from __future__ import annotations

from services.executor.core.virtual.effects import (
    Effect,
    PrepareWorker,
    SendReport,
    StartWorker,
    StopWorker,
    WorkerSpec,
)
from services.executor.core.virtual.membership import on_joined, on_lost, on_terms
from services.executor.core.virtual.state import ExecutorState, TrackedJob, Worker, WorkerPhase
from services.executor.core.virtual.stopping import stop
from shared.contracts.admission import ArrayEnded
from shared.contracts.attempts import (
    AllocationReleased,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobResized,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
)
from shared.contracts.base import Event
from shared.contracts.checkpoint import kept_ms, restart_ms, speed, spread_of
from shared.contracts.injections import FaultInjected, InjectionEnded
from shared.contracts.node_problems import NodeProblemNoted
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import Allocation, ArrayProgramNoted, JobEnqueued, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import WorkerRefused, WorkerStopped
from shared.contracts.series import series_of
from shared.ledger.decider import Fact
from shared.ledger.folds import unknown_event


def react(state: ExecutorState, fact: Fact) -> list[Effect]:
    """Fold a consumed fact and return its effects, which are dropped while a process catches up."""
    match fact.event:
        case JobPlaced() as e:
            return _on_placed(state, fact, e)
        case JobStarted() as e:
            return _on_started(state, fact, e)
        case JobPreempted() | JobMigrated() | JobResized() as e:
            return _on_set_back(state, fact, e)
        case JobStopRequested() | JobStartFailed() as e:
            return stop(state.workers_of(e.job_id, e.attempt))
        case AllocationReleased() as e:
            return _on_released(state, e)
        case NodeJoined() | NodeLost() | PoolConfigured() as e:
            return _on_node(state, fact, e)
        case FaultInjected() | InjectionEnded() as e:
            _on_injection(state, e)
        case event:
            _on_job(state, event)
    return []


def _on_job(state: ExecutorState, event: Event) -> None:
    match event:
        case JobEnqueued() as e:
            state.jobs[e.job_id] = _tracked(e)
        case JobSucceeded() | JobFailed() | JobCancelled() as e:
            state.jobs.pop(e.job_id, None)
        case ArrayProgramNoted() | ArrayEnded() | NodeProblemNoted():
            pass  # Virtual workers run no program, and virtual nodes have no problems.
        case _:
            raise unknown_event("placement", event)


def _tracked(e: JobEnqueued) -> TrackedJob:
    """Return the job; a transferred one goes on from the checkpoint that it brought along."""
    before = e.spec.transferred if e.attempt == 1 else None
    if before is None:
        return TrackedJob(e.tenant, e.spec)
    return TrackedJob(e.tenant, e.spec, done_s=before.done_s, resumes=before.resumes)


def _on_node(
    state: ExecutorState, fact: Fact, e: NodeJoined | NodeLost | PoolConfigured
) -> list[Effect]:
    match e:
        case NodeJoined():
            state.gpu_types[e.node_id] = e.gpu_type
            state.racks[e.node_id] = e.rack
            return on_joined(state, e)
        case NodeLost():
            return on_lost(state, e)
        case PoolConfigured():
            return on_terms(state, fact, e)


def _on_injection(state: ExecutorState, e: FaultInjected | InjectionEnded) -> None:
    """Note the fault; it has an effect as long as it is noted, and until its own end."""
    if isinstance(e, FaultInjected):
        state.injections[e.node_id] = e
    else:
        state.injections.pop(e.node_id, None)


def _on_placed(state: ExecutorState, fact: Fact, e: JobPlaced) -> list[Effect]:
    job = state.jobs.get(e.job_id)
    if job is not None:
        job.workers = len(e.allocations)
        gpu_types = {state.gpu_types.get(allocation.node_id, "") for allocation in e.allocations}
        job.gpu_types = tuple(sorted(gpu_types))
        job.spread = spread_of((one.node_id for one in e.allocations), state.racks)
        job.series = series_of(e.tenant, job.spec, job.workers, job.gpu_types)
    effects: list[Effect] = []
    for allocation in e.allocations:
        allocation_id = f"{fact.place}/{allocation.rank}"
        if allocation.node_id not in state.nodes or allocation_id in state.workers:
            continue
        worker = Worker(
            allocation_id,
            e.job_id,
            e.attempt,
            allocation.node_id,
            allocation.gpus,
            allocation.gpu_milli,
        )
        state.add(worker)
        effects += _prepare(state, worker, e, allocation, job)
    return effects


def _prepare(
    state: ExecutorState,
    worker: Worker,
    e: JobPlaced,
    allocation: Allocation,
    job: TrackedJob | None,
) -> list[Effect]:
    """Prepare the worker, or report why it cannot run."""
    if worker.node_id in state.usurped | state.rejoining:
        # Another executor runs it, or the new incarnation will end it.
        worker.phase = WorkerPhase.GONE
        return []
    incarnation = state.own_incarnations.get(worker.node_id)
    if incarnation is None or state.joined.get(worker.node_id) != incarnation:
        return _report_end(worker, WorkerStopped(**_ids(worker)))
    problem = _problem(state, worker, job)
    if job is None or problem:
        return _report_end(worker, WorkerRefused(**_ids(worker), reason=problem))
    state.occupy(worker)
    return [PrepareWorker(_worker_spec(worker, e, allocation, job))]


def _problem(state: ExecutorState, worker: Worker, job: TrackedJob | None) -> str:
    node = state.nodes[worker.node_id]
    if job is None:
        return "job_unknown: its JobEnqueued is not in the ledger"
    if node.backend not in state.backends:
        return f"backend_not_allowed: the pool does not let workers run as {node.backend}"
    if any(gpu < 0 or gpu >= node.gpus for gpu in worker.gpus):
        return f"no_such_gpu: the node has {node.gpus}"
    busy = list(state.busy_gpus(worker))
    return f"gpu_busy: {busy}" if busy else ""


def _report_end(worker: Worker, report: WorkerStopped | WorkerRefused) -> list[Effect]:
    worker.phase = WorkerPhase.GONE
    worker.last_report = report
    return [SendReport(report)]


def _ids(worker: Worker) -> dict[str, str]:
    return {"allocation_id": worker.allocation_id, "job_id": worker.job_id}


def _worker_spec(worker: Worker, e: JobPlaced, a: Allocation, job: TrackedJob) -> WorkerSpec:
    return WorkerSpec(
        allocation_id=worker.allocation_id,
        job_id=e.job_id,
        rank=a.rank,
        world_size=len(e.allocations),
        node_id=a.node_id,
        gpus=a.gpus,
        gpu_milli=a.gpu_milli,
        gang_nodes=tuple(sorted({o.node_id for o in e.allocations})),
        job_spec=job.spec,
        gpu_types=job.gpu_types,
        spread=job.spread,
        series=job.series,
        done_s=job.done_s,
        restart_s=job.spec.simulated.restart_s if job.resumes and job.spec.simulated else 0.0,
    )


def _on_started(state: ExecutorState, fact: Fact, e: JobStarted) -> list[Effect]:
    if job := state.jobs.get(e.job_id):
        job.started_at = fact.at
    effects: list[Effect] = []
    for worker in state.workers_of(e.job_id, e.attempt):
        if worker.phase is WorkerPhase.READY:
            worker.phase = WorkerPhase.RUNNING
            effects.append(StartWorker(worker.allocation_id))
    return effects


def _on_set_back(
    state: ExecutorState, fact: Fact, e: JobPreempted | JobMigrated | JobResized
) -> list[Effect]:
    """Stop the workers of a job that will go on from its last checkpoint."""
    job = state.jobs.get(e.job_id)
    if job and job.started_at:
        save_work(job, fact.at, state.time_scale)
    return stop(state.workers_of(e.job_id, e.attempt))


def save_work(job: TrackedJob, at: int, time_scale: float) -> None:
    """End the start at `at` (ms) and keep the work up to its last checkpoint."""
    began = job.started_at + (restart_ms(job.spec, time_scale) if job.resumes else 0)
    kept = kept_ms(job.spec, max(0, at - began), time_scale)
    job.done_s += kept / 1000 * time_scale * speed(job.spec, job.workers, job.gpu_types, job.spread)
    job.resumes = True
    job.started_at = 0


def _on_released(state: ExecutorState, e: AllocationReleased) -> list[Effect]:
    worker = state.workers.get(e.allocation_id)
    if worker is None:
        return []
    if worker.lives:
        # The lease ran out before the stop was reported: nothing waits for the report.
        worker.released = True
        worker.phase = WorkerPhase.STOPPING
        return [StopWorker(worker.allocation_id)]
    state.drop(worker)
    return []
