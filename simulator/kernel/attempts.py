"""A job starts, ends, or is stopped (rule 7)."""

from __future__ import annotations

from simulator.kernel import allocations as spans
from simulator.kernel import end_heap
from simulator.kernel import estimates as past
from simulator.kernel.codes import DONE, RUNNING
from simulator.kernel.compiled import compiled
from simulator.kernel.shapes import passed_over
from simulator.kernel.state import Job, Rules, Sim


@compiled
def start(sim: Sim, j: int, count: int, now: int) -> None:
    """The job runs on the `count` nodes that were placed."""
    spans.assign(sim.pool, sim.spans, sim.bits, sim.jobs[j], sim.placed, count)
    go(sim, j, now)


@compiled
def go(sim: Sim, j: int, now: int) -> None:
    """The job runs on the GPUs that it was given."""
    pool, job = sim.pool, sim.jobs[j]
    job.state = RUNNING
    pool.used += job.gang
    if job.starts == 0:
        job.first_start_ms = now
    job.paid_ms = sim.rules.restart_ms if job.starts else 0
    job.starts += 1
    job.started_ms = now
    job.ends_ms = now + max(0, job.duration_ms - job.kept_ms) + job.paid_ms
    slot = sim.running[pool.running]
    slot.job = j
    slot.until_ms = 0
    slot.started_ms = now
    slot.moves_ms = now + max(sim.rules.residency_ms, job.debt_ms, sim.rules.move_after_ms)
    slot.safe_ms = now + max(sim.rules.residency_ms, job.debt_ms)
    job.running_at = pool.running
    end_heap.add(sim.ends, sim.jobs, pool.running, job.ends_ms, j)
    pool.running += 1
    if job.claim:
        job.claim = 0
        pool.claims -= 1
    leave_line(sim, job)


@compiled
def leave_line(sim: Sim, job: Job) -> None:
    """One less waits with this shape."""
    shape, walk = sim.shapes[job.kind], sim.walk
    walk.started += 1
    shape.waiting -= 1
    if shape.waiting == 0:
        sim.pool.waiting_shapes -= 1
        if not passed_over(shape):
            walk.open_shapes -= 1


@compiled
def release(sim: Sim, j: int, now: int) -> None:
    """The job has no GPUs any more."""
    pool, job = sim.pool, sim.jobs[j]
    spans.shift_all(sim.free, sim.levels, sim.spans, job.span, 1)
    spans.clear(pool, sim.spans, sim.bits, job)
    end_heap.remove(sim.ends, sim.jobs, pool.running, j)
    pool.running -= 1
    last, slot = sim.running[pool.running], sim.running[job.running_at]
    slot.job = last.job
    slot.key = last.key
    slot.until_ms = last.until_ms
    slot.started_ms = last.started_ms
    slot.safe_ms = last.safe_ms
    slot.moves_ms = last.moves_ms
    sim.jobs[last.job].running_at = job.running_at
    pool.used -= job.gang
    job.held_ms += now - job.started_ms


@compiled
def end(sim: Sim, j: int, now: int) -> None:
    """The job is done, and history learns its run time."""
    job = sim.jobs[j]
    release(sim, j, now)
    job.state = DONE
    job.lost_ms += job.paid_ms
    sim.pool.done += 1
    if sim.rules.knows:
        past.learn(sim.groups[j], sim.counts, job.duration_ms / 1000.0)


@compiled
def stop(sim: Sim, j: int, now: int) -> None:
    """The job is preempted: it keeps what its last checkpoint has."""
    job = sim.jobs[j]
    release(sim, j, now)
    sim.pool.preemptions += 1
    worked_ms = max(0, now - job.started_ms - job.paid_ms)
    saved_ms = saved_of(sim.rules, worked_ms)
    job.lost_ms += now - job.started_ms - saved_ms
    job.kept_ms += saved_ms
    job.debt_ms = worked_ms - saved_ms + sim.rules.restart_ms
    job.ends_ms = -1


@compiled
def saved_of(rules: Rules, worked_ms: int) -> int:
    """Work up to the last checkpoint; none without checkpoints."""
    if rules.checkpoint_ms == 0:
        return 0
    return worked_ms // rules.checkpoint_ms * rules.checkpoint_ms
