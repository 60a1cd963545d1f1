"""Start, end and stop of a job's attempt (rule 7)."""

from __future__ import annotations

from simulator.kernel import allocations, end_heap, entitlement, estimates, keys, progress
from simulator.kernel.codes import DONE, HOUR_MS, NEVER, RUNNING
from simulator.kernel.compiled import compiled
from simulator.kernel.shapes import is_passed_over
from simulator.kernel.state import JobRow, Sim


@compiled
def start(sim: Sim, j: int, count: int, now: int) -> None:
    """Start the job on the `count` nodes in `placed`."""
    allocations.assign(sim.pool, sim.allocations, sim.bits, sim.jobs[j], sim.placed, count)
    begin_attempt(sim, j, now)


@compiled
def begin_attempt(sim: Sim, j: int, now: int) -> None:
    """Set the job running on the GPUs that it was allocated."""
    pool, job = sim.pool, sim.jobs[j]
    job.state = RUNNING
    pool.used += job.gang
    if job.starts == 0:
        job.first_start_ms = now
    job.paid_ms = job.restart_ms if job.starts else 0
    job.starts += 1
    job.started_ms = now
    job.ends_ms = now + max(0, job.duration_ms - job.checkpointed_ms) + job.paid_ms
    slot = sim.running[pool.running]
    slot.job = j
    slot.until_ms = 0
    slot.started_ms = now
    slot.tie = job.tie
    slot.expected_end_ms = 0
    if sim.rules.preempts_by_rank:
        protected_ms = progress.protected_ms(sim.rules, job)
        if job.fixed:
            protected_ms = NEVER
        slot.migratable_ms = now + max(protected_ms, sim.rules.defragment_after_ms)
        slot.safe_ms = now + protected_ms
    job.running_at = pool.running
    end_heap.add(sim.ends, sim.jobs, pool.running, job.ends_ms, j)
    pool.running += 1
    if job.reservation_round:
        job.reservation_round = 0
        pool.reservations -= 1
    leave_queue(sim, job)


@compiled
def leave_queue(sim: Sim, job: JobRow) -> None:
    """Count one job fewer waiting with this shape."""
    shape, scan = sim.shapes[job.kind], sim.scan
    scan.started += 1
    shape.waiting -= 1
    if shape.waiting == 0:
        sim.pool.waiting_shapes -= 1
        if not is_passed_over(shape):
            scan.open_shapes -= 1


@compiled
def release(sim: Sim, j: int, now: int) -> None:
    """Free the job's GPUs and remove it from the running jobs."""
    pool, job = sim.pool, sim.jobs[j]
    allocations.shift_all(sim.free, sim.levels, sim.allocations, job.first_allocation, 1)
    allocations.clear(pool, sim.allocations, sim.bits, job)
    end_heap.remove(sim.ends, sim.jobs, pool.running, j)
    pool.running -= 1
    last, slot = sim.running[pool.running], sim.running[job.running_at]
    slot.job = last.job
    slot.key = last.key
    slot.until_ms = last.until_ms
    slot.started_ms = last.started_ms
    slot.safe_ms = last.safe_ms
    slot.migratable_ms = last.migratable_ms
    slot.tie = last.tie
    slot.expected_end_ms = last.expected_end_ms
    sim.jobs[last.job].running_at = job.running_at
    pool.used -= job.gang
    job.held_ms += now - job.started_ms


@compiled
def end(sim: Sim, j: int, now: int) -> None:
    """End the job and add its run time to history."""
    job = sim.jobs[j]
    release(sim, j, now)
    job.state = DONE
    if job.paid_ms:
        lose(sim, job, job.paid_ms, now)
    sim.pool.done += 1
    entitlement.count_job(sim, j, -1)
    if sim.rules.has_distributions and teaches(sim, j):
        estimates.learn_run_time(sim.groups[j], sim.counts, job.duration_ms / 1000.0)


@compiled
def teaches(sim: Sim, j: int) -> bool:
    """Return whether history learns the run time: not of a failure at once, unless it was
    predicted to be shorter still.
    """
    job = sim.jobs[j]
    run_s = job.duration_ms / 1000.0
    if not estimates.is_cut_short(sim.rules.guards, job.failed, run_s):
        return True
    return run_s > keys.mean_left_s(sim.distributions[j], 0.0)


@compiled
def lose(sim: Sim, job: JobRow, lost_ms: int, now: int) -> None:
    """Account time on GPUs that kept no work: what follows a checkpoint, and restarts."""
    job.lost_ms += lost_ms
    if sim.rules.from_ms <= now < sim.rules.to_ms:
        sim.lost[(now - sim.rules.from_ms) // HOUR_MS] += lost_ms * job.gang


@compiled
def stop(sim: Sim, j: int, now: int) -> None:
    """Preempt the job; it keeps the work up to its last checkpoint."""
    job = sim.jobs[j]
    release(sim, j, now)
    sim.pool.preemptions += 1
    worked_ms = progress.worked_ms(job, now)
    saved_ms = progress.checkpointed_work_ms(sim.rules, job, worked_ms)
    lose(sim, job, now - job.started_ms - saved_ms, now)
    job.checkpointed_ms += saved_ms
    job.debt_ms = worked_ms - saved_ms + job.restart_ms
    job.ends_ms = -1
    job.longest_ms = max(job.longest_ms, now - job.started_ms)
    if sim.rules.progress:
        sim.pool.loss_spent += progress.cost_of(progress.milli(job.gang), job.debt_ms)
