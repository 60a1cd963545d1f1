"""Changes of running jobs that differ from their allotment: they stop, move or are resized."""

from __future__ import annotations

from collections.abc import Iterable

from services.placement.core.migration.rules import MIGRATIONS_PER_ROUND
from services.placement.core.pool.allocations import slots_by_rank, slots_of
from services.placement.core.pool.job import Job
from services.placement.core.pool.schedule import Allotted
from services.placement.core.pool.shape import Slot
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.resize.shrink import keep_order
from services.placement.core.round.fit import probe
from services.placement.core.round.plan import Migration, Plan, Resize
from services.placement.core.round.protection import movable_from_ms
from services.placement.core.round.view import View
from services.placement.core.scheduled.chosen_nodes import (
    Leaving,
    awaited_nodes,
    health_of,
    is_elsewhere,
    target_of,
)
from services.placement.core.scheduled.claims import allotted_shape, holds_in_view


def change_running(pool: Pool, view: View, trial: Trial, plan: Plan, leaving: Leaving) -> None:
    """Add stops, moves and resizes of the jobs whose GPUs differ from their allotment."""
    for job in view.running.values():
        if not differs(pool, view, job):
            continue
        own = pool.schedule.allotted.get(job.job_id)
        if own is None or types_of(pool, job) != {own.gpu_type}:
            plan.stops.append(job)
        elif not (is_to_move(pool, job, own) and move(trial, plan, job, own, leaving)):
            resize(trial, plan, job, own)


def leaving_nodes(pool: Pool, view: View, trial: Trial) -> Leaving:
    """Return, by node, the jobs that stop there, or will by their allotment.

    One that cannot have its chosen nodes leaves none, and none is waited for there. Jobs that leave
    nodes for each other do.
    """
    jobs = {job.job_id: job for job in view.running.values() if is_leaving(pool, view, job)}
    while True:
        leaving = by_node(jobs.values())
        stuck = [job for job in jobs.values() if is_stuck(pool, trial, job, leaving)]
        if not stuck:
            return leaving
        for job in stuck:
            del jobs[job.job_id]


def by_node(jobs: Iterable[Job]) -> Leaving:
    leaving: dict[str, frozenset[str]] = {}
    for job in jobs:
        for node_id in {slot.node_id for slot in slots_of(job)}:
            leaving[node_id] = leaving.get(node_id, frozenset()) | {job.job_id}
    return leaving


def is_leaving(pool: Pool, view: View, job: Job) -> bool:
    """Return whether a job stops, or gives up GPUs by its allotment if that can be carried out."""
    if job.phase == "stopping":
        return True
    own = pool.schedule.allotted.get(job.job_id)
    grows = own is not None and own.workers > len(job.allocations) and not own.nodes
    return differs(pool, view, job) and not grows


def is_stuck(pool: Pool, trial: Trial, job: Job, leaving: Leaving) -> bool:
    """Return whether a job that is to move stays: its nodes cannot have it, or are slower."""
    own = pool.schedule.allotted.get(job.job_id)
    if job.phase == "stopping" or own is None or types_of(pool, job) != {own.gpu_type}:
        return False
    if not is_to_move(pool, job, own):
        return False
    target = target_of(trial, job, own)
    if target:
        return is_slower(trial, job, target)
    return not awaited_nodes(trial, job, own, leaving)


def differs(pool: Pool, view: View, job: Job) -> bool:
    """Return whether a job has to change by its allotment, and may."""
    if not holds_in_view(pool, job) or not may_move(pool, view, job):
        return False
    own = pool.schedule.allotted.get(job.job_id)
    return (
        own is None
        or types_of(pool, job) != {own.gpu_type}
        or own.workers != len(job.allocations)
        or is_to_move(pool, job, own)
    )


def types_of(pool: Pool, job: Job) -> set[str]:
    return {pool.board.nodes[slot.node_id].kind.gpu_type for slot in slots_of(job)}


def may_move(pool: Pool, view: View, job: Job) -> bool:
    """Return whether the job runs, may be stopped, and had its guarantee and its residency."""
    return movable_from_ms(job, pool.min_residency_ms, pool.time_scale) <= view.now


def is_to_move(pool: Pool, job: Job, own: Allotted) -> bool:
    """Return whether other nodes were chosen for a job since it was placed.

    One that was placed by the proposal itself stays: its chosen nodes could not have it.
    """
    return job.placed_at < pool.schedule.at and is_elsewhere(job, own)


def move(trial: Trial, plan: Plan, job: Job, own: Allotted, leaving: Leaving) -> bool:
    """Move a job to its chosen nodes, or stop it where others still leave them.

    Return whether that is decided: a job stays where it is if its chosen nodes cannot have it, or
    are slower.
    """
    slots, target = slots_by_rank(job), target_of(trial, job, own)
    if not target and awaited_nodes(trial, job, own, leaving):
        plan.stops.append(job)
        return True
    if not target or is_slower(trial, job, target):
        return False
    if len(plan.migrations) == MIGRATIONS_PER_ROUND:
        plan.unfinished = True
        return True
    trial.take([slot for slot in target if slot not in slots])
    if len(target) == len(slots):
        plan.migrations.append(Migration(job, target, "scheduled"))
    else:
        plan.resizes.append(Resize(job, target))
    return True


def is_slower(trial: Trial, job: Job, target: list[Slot]) -> bool:
    return health_of(trial.board, target) < health_of(trial.board, slots_by_rank(job))


def resize(trial: Trial, plan: Plan, job: Job, own: Allotted) -> None:
    """Let a job keep as many workers as it is allotted, or grow once all that it lacks fit."""
    slots = slots_by_rank(job)
    if own.workers < len(slots):
        kept = set(keep_order(slots)[: own.workers])
        plan.resizes.append(Resize(job, [slot for slot in slots if slot in kept]))
    elif own.workers > len(slots):
        extra = extra_slots(trial, job, own, own.workers - len(slots))
        if extra:
            trial.take(extra)
            plan.resizes.append(Resize(job, slots + extra))


def extra_slots(trial: Trial, job: Job, own: Allotted, missing: int) -> list[Slot]:
    """Return free slots for all workers that the job lacks, or none."""
    shape = allotted_shape(job, Allotted(own.gpu_type, missing))
    return probe(trial, shape, job.avoid)
