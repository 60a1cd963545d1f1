"""The rules of a migration, whichever planner proposes it."""

from __future__ import annotations

from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.board import Board
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.round.plan import Migration, Plan
from services.placement.core.round.protection import movable_from_ms
from services.placement.core.round.view import View

MIGRATIONS_PER_ROUND = 32
"""That a plan may propose; each stops a job that could have gone on."""


def allowed_migrations(pool: Pool, view: View, plan: Plan) -> list[Migration]:
    """Return the proposed migrations that keep the rules.

    A job that runs, may be stopped and had its guarantee and its residency; to slots of its own
    shape that are its own or free after what the plan starts; each job once; a few per round.
    """
    if not plan.migrations:
        return []
    busy = {eviction.job.job_id for eviction in plan.evictions} | set(pool.migrations)
    allowed: list[Migration] = []
    with Trial(view.board) as trial:
        for assignment in plan.assignments:
            trial.take(assignment.slots)
        for migration in plan.migrations:
            if len(allowed) == MIGRATIONS_PER_ROUND:
                break
            job = migration.job
            movable_ms = movable_from_ms(job, pool.min_residency_ms, pool.time_scale)
            if job.job_id in busy or movable_ms > view.now:
                continue
            if suits(trial.board, migration) and take_target(trial, migration):
                busy.add(job.job_id)
                allowed.append(migration)
    return allowed


def suits(board: Board, migration: Migration) -> bool:
    """Return whether each worker has a slot of the shape, on a node in use that could hold it."""
    job, slots = migration.job, migration.slots
    return len(slots) == len(job.allocations) and all(
        fits(board, job.shape, slot) for slot in slots
    )


def fits(board: Board, shape: Shape, slot: Slot) -> bool:
    """Return whether the slot is one worker of the shape, on a node in use that could hold it."""
    needed = (shape.gpus, shape.milli, shape.cpu_milli, shape.mem_mib)
    offered = (len(set(slot.gpus)), slot.milli, slot.cpu_milli, slot.mem_mib)
    is_worker = needed == offered and board.is_indexed(slot)
    return is_worker and board.nodes[slot.node_id].kind.workers(shape) > 0


def take_target(trial: Trial, migration: Migration) -> bool:
    """Take the target if it is free or the job's own; what the job leaves stays taken."""
    mark = len(trial.log)
    own = slots_by_rank(migration.job)
    trial.give(own)
    if not trial.board.are_free(migration.slots):
        trial.rollback(mark)
        return False
    trial.take(migration.slots)
    trial.reserve([slot for slot in own if slot not in migration.slots])
    return True
