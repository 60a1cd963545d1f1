"""Checks a proposal against the pool as it is now: which starts, stops and migrations still hold.

Whether a solver's plan fits the instance it was given is checked by `solver/checker.py`.
"""

from __future__ import annotations

from services.placement.core.moves.targets import targets_reserved
from services.placement.core.pool.allocations import slot_of, slots_by_rank
from services.placement.core.pool.board import Board
from services.placement.core.pool.draft import Draft, are_free
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.state import Pool
from services.placement.core.round.plan import Eviction, Migration, Plan
from services.placement.core.round.protection import movable_from_ms
from services.placement.core.round.view import View
from shared.contracts.placement import PlannedStart, PlannedStop

MIGRATIONS_PER_ROUND = 32
"""That a plan may propose; each stops a job that could have gone on."""
RESIZES_PER_ROUND = 4


def allowed_migrations(pool: Pool, view: View, plan: Plan) -> list[Migration]:
    """Return the proposed migrations that keep the rules.

    A job that runs, may be stopped and had its guarantee and its residency; to slots of its own
    shape that are its own or free after what the plan starts; each job once; a few per round.
    """
    if not plan.migrations:
        return []
    busy = {eviction.job.job_id for eviction in plan.evictions} | set(pool.migrations)
    allowed: list[Migration] = []
    with Draft(view.board) as draft:
        for assignment in plan.assignments:
            draft.take(assignment.slots)
        for migration in plan.migrations:
            if len(allowed) == MIGRATIONS_PER_ROUND:
                break
            job = migration.job
            movable_ms = movable_from_ms(job, pool.min_residency_ms, pool.time_scale)
            if job.job_id in busy or movable_ms > view.now:
                continue
            if suits(draft.board, migration) and take_target(draft, migration):
                busy.add(job.job_id)
                allowed.append(migration)
    return allowed


def suits(board: Board, migration: Migration) -> bool:
    """Whether each worker has a slot of the shape, on a node in use that could hold it."""
    job, slots = migration.job, migration.slots
    return len(slots) == len(job.allocations) and all(
        fits(board, job.shape, slot) for slot in slots
    )


def fits(board: Board, shape: Shape, slot: Slot) -> bool:
    """Whether the slot is one worker of the shape, on a node in use that could hold it."""
    needed = (shape.gpus, shape.milli, shape.cpu_milli, shape.mem_mib)
    offered = (len(set(slot.gpus)), slot.milli, slot.cpu_milli, slot.mem_mib)
    is_worker = needed == offered and board.is_indexed(slot)
    return is_worker and board.nodes[slot.node_id].kind.workers(shape) > 0


def take_target(draft: Draft, migration: Migration) -> bool:
    """Take the target if it is free or the job's own; what the job leaves stays taken."""
    mark = len(draft.log)
    own = slots_by_rank(migration.job)
    draft.give(own)
    if not draft.take_all(migration.slots):
        draft.rollback(mark)
        return False
    draft.reserve([slot for slot in own if slot not in migration.slots])
    return True


def allowed_start(pool: Pool, view: View, start: PlannedStart) -> Job | None:
    """Return the job if it still waits for this attempt and its slots are free and unreserved."""
    job = pool.waiting.get(start.job_id)
    if job is None or job.attempt != start.attempt or job.not_before > view.now:
        return None
    with targets_reserved(pool):
        is_free = are_free(pool.board, map(slot_of, start.allocations))
    return job if is_free else None


def allowed_stop(view: View, stop: PlannedStop) -> Eviction | None:
    """Return the eviction if both jobs are still there and one may stop the other."""
    victim, by = view.jobs.get(stop.job_id), view.waiting.get(stop.by_job_id)
    if victim is None or by is None or victim.attempt != stop.attempt:
        return None
    return view.victims.eviction(victim, by) if victim in view.victims.of(by) else None
