"""Folds of jobs on GPUs: their start, their stop and their end."""

from __future__ import annotations

from collections.abc import Iterable

from services.placement.core.pool.allocations import slot_of
from services.placement.core.pool.fold_nodes import forget_if_gone
from services.placement.core.pool.job import Job, WorkerAllocation
from services.placement.core.pool.shape import GPU
from services.placement.core.pool.state import Pool
from shared.contracts.construct import construct
from shared.contracts.failures import WorkerFailure
from shared.contracts.placement import (
    Allocation,
    AllocationReleased,
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobPlaced,
    JobPreempted,
    JobResized,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
    WorkersReady,
)
from shared.ledger.decider import Fact

WorkerEvent = JobPlaced | WorkersReady | JobStarted | AllocationReleased
StopEvent = JobStartFailed | JobPreempted | JobMigrated | JobResized | JobStopRequested
EndEvent = JobAttemptFailed | JobSucceeded | JobFailed | JobCancelled


def fold_worker(pool: Pool, event: WorkerEvent, fact: Fact) -> None:
    """Apply a fact of the workers of a gang."""
    match event:
        case JobPlaced():
            place(pool, event, fact)
        case WorkersReady(job_id=job_id, ranks=ranks):
            pool.jobs[job_id].ready.update(ranks)
        case JobStarted():
            start(pool, event, fact)
        case AllocationReleased():
            release(pool, event, fact)


def fold_stop(pool: Pool, event: StopEvent, fact: Fact) -> None:
    """Apply a fact by which a gang has to stop; its GPUs stay taken until they are released."""
    job = pool.jobs[event.job_id]
    job.phase = "stopping"
    pool.starting.pop(job.job_id, None)
    match event:
        case JobStartFailed():
            job.stop, job.stop_reason = "start_failed", event.reason
            job.start_failures += 1
            job.avoid = tuple(dict.fromkeys(job.avoid + event.node_ids))
        case JobPreempted():
            preempt(pool, job, event.reason, event.by_job_id, fact.at)
        case JobMigrated():
            preempt(pool, job, "migrated", event.by_job_id, fact.at)
            keep_target(pool, job, event.target)
        case JobResized():
            preempt(pool, job, "resized", event.by_job_id, fact.at)
            keep_target(pool, job, event.target)
        case JobStopRequested():
            if event.reason == "cancelled" or not job.stop:
                job.stop, job.stop_reason = event.reason, event.detail


def fold_end(pool: Pool, event: EndEvent, fact: Fact) -> None:
    """Apply the end of an attempt, or of the job."""
    match event:
        case JobAttemptFailed(job_id=job_id):
            park(pool, pool.jobs[job_id])
        case JobSucceeded() | JobFailed() | JobCancelled():
            end(pool, event.job_id, fact.at)


def place(pool: Pool, event: JobPlaced, fact: Fact) -> None:
    """Take the GPUs of every allocation; an allocation id is `place of the fact/rank`."""
    job = pool.jobs[event.job_id]
    pool.leave(job)
    job.phase, job.placed_at, job.failure = "placed", fact.at, None
    pool.hold(job)
    pool.starting[job.job_id] = fact.at
    for allocation in event.allocations:
        slot = slot_of(allocation)
        pool.board.shift(slot, -1)
        workers = pool.board.nodes[slot.node_id].jobs
        workers[job.job_id] = workers.get(job.job_id, 0) + 1
        job.allocations[f"{fact.place}/{allocation.rank}"] = WorkerAllocation(allocation.rank, slot)
        job.gpus += len(slot.gpus) * slot.milli / GPU


def start(pool: Pool, event: JobStarted, fact: Fact) -> None:
    """The job runs; under a guarantee, or where rank may stop jobs, that is a change."""
    job = pool.jobs[event.job_id]
    job.phase, job.started_at = "running", fact.at
    if job.spec.elastic is not None:
        pool.elastic[job.job_id] = None
    job.start_failures = 0
    pool.starting.pop(event.job_id, None)
    if pool.waiting and (job.spec.guaranteed_s or pool.is_ranked):
        pool.touch(fact.at)


def release(pool: Pool, event: AllocationReleased, fact: Fact) -> None:
    """Give back the GPUs of one worker."""
    job = pool.jobs[event.job_id]
    allocation = job.allocations.pop(event.allocation_id)
    node = pool.board.nodes[allocation.slot.node_id]
    pool.board.shift(allocation.slot, 1)
    node.jobs[job.job_id] -= 1
    if not node.jobs[job.job_id]:
        del node.jobs[job.job_id]
    forget_if_gone(pool, node)
    pool.touch(fact.at)
    job.clean = job.clean and event.reason == "exited" and event.exit_code == 0
    if job.failure is None:
        job.failure = worker_failure(event, allocation.rank)
    failed = event.reason == "exited" and event.exit_code != 0
    if failed and job.phase == "running" and job.exit_code is None:
        job.exit_code, job.failed_node = event.exit_code, event.node_id


def worker_failure(event: AllocationReleased, rank: int) -> WorkerFailure | None:
    """Return the failure of a released worker, with its place in the gang."""
    if event.failure is None:
        return None
    return construct(
        WorkerFailure,
        reason=event.failure.reason,
        detail=event.failure.detail,
        output=event.failure.output,
        permanent=event.failure.permanent,
        rank=rank,
        node_id=event.node_id,
        exit_code=event.exit_code,
    )


def preempt(pool: Pool, job: Job, reason: str, by_job_id: str, at: int) -> None:
    """Note the preemption and its price; a job that it makes room for gets a reservation."""
    job.set_back(at, pool.time_scale)
    job.stop, job.stop_reason, job.makes_room_for = "preempted", reason, by_job_id
    if by_job_id:
        pool.reservations.setdefault(by_job_id, {})[job.job_id] = None


def keep_target(pool: Pool, job: Job, target: Iterable[Allocation]) -> None:
    """Keep the target of a migration until the job is placed again."""
    pool.migrations[job.job_id] = tuple(map(slot_of, target))


def park(pool: Pool, job: Job) -> None:
    """Set the job aside until admission lets it in again."""
    pool.let_go(job)
    # The GPU time of this attempt is reported: a cancel while it is parked reports no more.
    job.phase, job.gpus, job.started_at = "parked", 0.0, 0
    job.failures += 1


def end(pool: Pool, job_id: str, at: int) -> None:
    """Remove every trace of the job; later reports of it are late and ignored."""
    job = pool.jobs.pop(job_id)
    pool.let_go(job)
    if job_id in pool.waiting:
        pool.touch(at)
    pool.leave(job)
    pool.elastic.pop(job_id, None)
    pool.ranks.scores.pop(job_id, None)
