"""Jobs leave a node that an operator drains."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.lifecycle import gangs
from services.placement.core.migration.migrate import migrate_job
from services.placement.core.migration.targets import targets_reserved
from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import place
from services.placement.core.round.plan import Migration
from services.placement.core.round.reserve import reserve_freed
from services.placement.core.round.view import view_of
from shared.ledger.decider import Decision


def drain(pool: Pool, node_id: str, now: int, cause: str) -> Iterator[Decision]:
    """Migrate the jobs on the node for which there is room now; preempt the others."""
    jobs = [pool.jobs[job_id] for job_id in pool.board.nodes[node_id].jobs]
    targets = room_elsewhere(pool, jobs, now)
    for job in jobs:
        if job.job_id in targets:
            yield migrate_job(pool, Migration(job, targets[job.job_id], "drain"), now, cause)
        elif job.phase in ("placed", "running"):
            yield gangs.preempt_job(job, "node_drained", "", 0.0, cause)


def migrate_off_node(pool: Pool, node_id: str, now: int, cause: str) -> Iterator[Decision]:
    """Migrate the jobs on a node out of use for which there is room now; the others go on."""
    jobs = [pool.jobs[job_id] for job_id in pool.board.nodes[node_id].jobs]
    for job_id, target in room_elsewhere(pool, jobs, now).items():
        yield migrate_job(pool, Migration(pool.jobs[job_id], target, "drain"), now, cause)


def room_elsewhere(pool: Pool, jobs: list[Job], now: int) -> dict[str, list[Slot]]:
    """Return a target by job id for each running job that has one; the highest class first.

    Reserved GPUs are not used: the targets of earlier migrations, and the reservations of jobs
    that made others stop.
    """
    running = [job for job in jobs if job.phase == "running"]
    view = view_of(pool, now)
    targets: dict[str, list[Slot]] = {}
    with targets_reserved(pool), Trial(pool.board) as trial:
        for job_id in pool.reservations:
            if job := pool.waiting.get(job_id):
                reserve_freed(view, trial, job, job.shape)
        for job in sorted(running, key=lambda job: (job.tier, job.placed_at, job.job_id)):
            if target := relocate(trial, job):
                targets[job.job_id] = target
    return targets


def relocate(trial: Trial, job: Job) -> list[Slot]:
    """Return a slot per worker, new ones for workers on nodes out of use; empty if one has none.

    The new slots are taken on the trial.
    """
    board = trial.board
    slots = slots_by_rank(job)
    away = sum(not board.is_indexed(slot) for slot in slots)
    new = iter(place(trial, with_workers(job.shape, away), job.avoid))
    target = [slot if board.is_indexed(slot) else next(new, None) for slot in slots]
    return [slot for slot in target if slot] if None not in target else []


def with_workers(shape: Shape, workers: int) -> Shape:
    """Return the shape of a gang of exactly so many of these workers."""
    return shape._replace(min_workers=workers, max_workers=workers)
