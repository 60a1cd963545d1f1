"""Folds of jobs on GPUs: their start, their stop and their end."""

from __future__ import annotations

from collections.abc import Iterable

from services.placement.core.pool.allocations import slot_of
from services.placement.core.pool.fold_nodes import forget_if_gone
from services.placement.core.pool.job import Forecast, Job, WorkerAllocation
from services.placement.core.pool.settings import times_of
from services.placement.core.pool.shape import GPU
from services.placement.core.pool.state import Pool
from services.placement.core.pool.transferred import save_work
from shared.contracts.attempts import (
    AllocationReleased,
    JobAttemptFailed,
    JobCancelled,
    JobCheckpointed,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobProgressed,
    JobResized,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
    WorkersReady,
)
from shared.contracts.construct import construct
from shared.contracts.failures import WorkerFailure
from shared.contracts.mitigation import MitigationTurnedDown
from shared.contracts.nodes import WorkerStuckNoted
from shared.contracts.placement import Allocation, JobPlaced, JobStopDeferred, PreemptionPaused
from shared.ledger.decider import Fact


def place(pool: Pool, event: JobPlaced, fact: Fact) -> None:
    """Take the GPUs of every allocation; an allocation id is `place of the fact/rank`."""
    job = pool.jobs[event.job_id]
    pool.leave(job)
    job.phase, job.placed_at, job.failure = "placed", fact.at, None
    job.master_port, job.forecast = None, None
    pool.hold(job)
    pool.starting[job.job_id] = fact.at
    for allocation in event.allocations:
        slot = slot_of(allocation)
        pool.board.shift(slot, -1)
        pool.count_use(slot, 1, fact.at)
        workers = pool.board.nodes[slot.node_id].jobs
        workers[job.job_id] = workers.get(job.job_id, 0) + 1
        job.allocations[f"{fact.place}/{allocation.rank}"] = WorkerAllocation(allocation.rank, slot)
        job.gpus += len(slot.gpus) * slot.milli / GPU
    if pool.settings is not None and pool.settings.packing == "fragments":
        pool.recent_needs.add(job.shape, len(event.allocations))


def note_ready(pool: Pool, event: WorkersReady, fact: Fact) -> None:
    job = pool.jobs[event.job_id]
    job.ready.update(event.ranks)
    job.master_port = event.master_port or job.master_port


def note_stuck(pool: Pool, event: WorkerStuckNoted, fact: Fact) -> None:
    pool.stuck[event.allocation_id] = event.node_id


def start(pool: Pool, event: JobStarted, fact: Fact) -> None:
    """The job runs; under a guarantee, or where rank may stop jobs, that is a change."""
    job = pool.jobs[event.job_id]
    job.phase, job.started_at = "running", fact.at
    job.starts += 1
    job.checkpointed_ms = 0
    if not job.has_shown_restart and pool.settings is not None:
        job.restart_wall_ms = times_of(pool.settings).assumed_restart_ms
    job.paid_restart_ms = job.restart_wall_ms
    if job.spec.elastic is not None:
        pool.elastic[job.job_id] = None
    job.start_failures = 0
    pool.starting.pop(event.job_id, None)
    if pool.waiting and (job.spec.guaranteed_s or pool.is_ranked):
        pool.touch(fact.at)


def note_checkpoint(pool: Pool, event: JobCheckpointed, fact: Fact) -> None:
    """Rank may stop the job now: a round has to see it. It delays no round that is due anyway."""
    job = pool.jobs[event.job_id]
    steps = event.step - job.checkpoint_step
    if job.checkpointed_ms and steps > 0:
        job.step_us = (event.worked_ms - job.checkpointed_ms) * 1000 // steps
    job.checkpointed_ms, job.checkpoint_step = event.worked_ms, event.step
    note_restart(job, event.restart_ms)
    if pool.waiting and pool.is_ranked and not pool.changed:
        pool.touch(fact.at)


def note_restart(job: Job, restart_ms: int | None) -> None:
    """Note how long a start took until its work went on; what this one paid stays as assumed."""
    if restart_ms is not None:
        job.restart_wall_ms, job.has_shown_restart = restart_ms, True


def note_progress(pool: Pool, event: JobProgressed, fact: Fact) -> None:
    """Where EASY reserves by expected ends, a round has to see it; it delays none that is due."""
    job = pool.jobs[event.job_id]
    until = believed_until(job, event) if job.forecast is None else job.forecast.believed_until
    note_restart(job, event.restart_ms)
    job.forecast = Forecast(fact.at, event.step, event.ends_at, until)
    is_easy = pool.settings is not None and pool.settings.queue_mode == "easy"
    if pool.waiting and is_easy and not pool.changed:
        pool.touch(fact.at)


def believed_until(job: Job, first: JobProgressed) -> int:
    """Return the ms until when a start is believed: until it ran twice as long as it said first.

    A program that says again and again that it ends soon would hold up a reservation for ever.
    """
    return first.ends_at + max(0, first.ends_at - job.started_at)


def release(pool: Pool, event: AllocationReleased, fact: Fact) -> None:
    """Give back the GPUs of one worker."""
    job = pool.jobs[event.job_id]
    allocation = job.allocations.pop(event.allocation_id)
    pool.stuck.pop(event.allocation_id, None)
    node = pool.board.nodes[allocation.slot.node_id]
    pool.board.shift(allocation.slot, 1)
    pool.count_use(allocation.slot, -1, fact.at)
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


def fail_start(pool: Pool, event: JobStartFailed, fact: Fact) -> None:
    """Stop a gang that did not start, and avoid the nodes that were at fault."""
    job = stop(pool, event.job_id)
    job.stop, job.stop_reason = "start_failed", event.reason
    job.start_failures += 1
    job.avoid = tuple(dict.fromkeys(job.avoid + event.node_ids))


def preempt(pool: Pool, event: JobPreempted, fact: Fact) -> None:
    """Stop the job; only the stops that rank decides are paid from the loss budget."""
    stop_for(pool, event.job_id, event.reason, event.by_job_id, fact.at)
    if event.reason == "outranked":
        charge_loss(pool, event.job_id, fact.at)


def migrate(pool: Pool, event: JobMigrated, fact: Fact) -> None:
    stop_for(pool, event.job_id, "migrated", event.by_job_id, fact.at)
    if event.reason == "defragment":
        charge_loss(pool, event.job_id, fact.at)
    if event.reason == "slow_node":
        job, kept = pool.jobs[event.job_id], set(event.to_nodes)
        left = (node_id for node_id in event.from_nodes if node_id not in kept)
        job.avoid = tuple(dict.fromkeys((*job.avoid, *left)))
    keep_target(pool, event.job_id, event.target)


def resize(pool: Pool, event: JobResized, fact: Fact) -> None:
    stop_for(pool, event.job_id, "resized", event.by_job_id, fact.at)
    keep_target(pool, event.job_id, event.target)


def request_stop(pool: Pool, event: JobStopRequested, fact: Fact) -> None:
    """Stop a gang; of two reasons the first one counts, but a cancel always does."""
    job = stop(pool, event.job_id)
    if event.reason == "cancelled" or not job.stop:
        job.stop, job.stop_reason = event.reason, event.detail


def turn_down(pool: Pool, event: MitigationTurnedDown, fact: Fact) -> None:
    """Keep a plan that waits for room; of a job the last one counts."""
    if event.waits:
        pool.waiting_plans[event.job_id] = event
    else:
        pool.waiting_plans.pop(event.job_id, None)


def stop(pool: Pool, job_id: str) -> Job:
    """Let the gang of a job stop; its GPUs stay taken until they are released."""
    job = pool.jobs[job_id]
    job.phase = "stopping"
    pool.starting.pop(job_id, None)
    pool.waiting_plans.pop(job_id, None)
    return job


def stop_for(pool: Pool, job_id: str, reason: str, by_job_id: str, at: int) -> None:
    """Note a preemption and its price; a job that it makes room for gets a reservation."""
    job = stop(pool, job_id)
    save_work(pool, job, at)
    job.set_back(at, pool.time_scale)
    job.stop, job.stop_reason, job.makes_room_for = "preempted", reason, by_job_id
    if by_job_id:
        pool.reservations.setdefault(by_job_id, {})[job_id] = None


def charge_loss(pool: Pool, job_id: str, at: int) -> None:
    """Take what a stop costs from the loss budget: the lost work and the restart, per GPU."""
    job = pool.jobs[job_id]
    if job.started_at:
        pool.loss.charge(at, job.gpus_milli, job.debt_ms, pool.loss_share)


def defer_stop(pool: Pool, event: JobStopDeferred, fact: Fact) -> None:
    """Note until when stops for the waiting job are put off: not before that is it repeated."""
    job = pool.jobs.get(event.by_job_id)
    if job is not None:
        job.deferred_until_ms = max(job.deferred_until_ms, event.until)


def note_pause(pool: Pool, event: PreemptionPaused, fact: Fact) -> None:
    pool.loss.is_reported = True


def keep_target(pool: Pool, job_id: str, target: Iterable[Allocation]) -> None:
    """Keep the target of a migration until the job is placed again."""
    pool.migrations[job_id] = tuple(map(slot_of, target))


def park(pool: Pool, event: JobAttemptFailed, fact: Fact) -> None:
    """Park the job until admission lets it in again."""
    job = pool.jobs[event.job_id]
    pool.let_go(job)
    job.note_run(fact.at)
    # The GPU time of this attempt is reported: a cancel while it is parked reports no more.
    job.phase, job.gpus, job.started_at = "parked", 0.0, 0
    job.failures += 1


def end(pool: Pool, event: JobSucceeded | JobFailed | JobCancelled, fact: Fact) -> None:
    """Remove every trace of the job; later reports of it are late and ignored."""
    job_id = event.job_id
    job = pool.jobs.pop(job_id)
    pool.let_go(job)
    if job_id in pool.waiting:
        pool.touch(fact.at)
    pool.leave(job)
    pool.elastic.pop(job_id, None)
    pool.ranks.scores.pop(job_id, None)
