"""An elastic job grows while no job waits, if the restart is worth it.

It must save at least `LEAST_S` and `WORTH` times what the restart costs (the work since the last
checkpoint and the restart itself), both in cluster seconds. Work is taken to be shared evenly by
the workers. `walltime_s` says what is left of it; without one, or past it, a job is taken to be
half done. It keeps the GPUs that it has and takes free ones beside them, no slower than its own.
"""

from __future__ import annotations

from services.placement.core.moves.plan_check import RESIZES_PER_ROUND
from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.draft import Draft
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import Slot
from services.placement.core.pool.state import Pool
from services.placement.core.round.fit import place
from services.placement.core.round.plan import Plan, Resize
from services.placement.core.round.protection import NEVER, movable_from_ms
from services.placement.core.round.view import View
from shared.contracts.checkpoint import wall_ms

WORTH = 2.0
LEAST_S = 60.0


def grow(pool: Pool, view: View, draft: Draft, plan: Plan) -> None:
    """Grow jobs, the highest class first; ask for another round where one may grow later."""
    again_ms = max(1, wall_ms(LEAST_S, pool.time_scale))
    for job in sorted(
        pool.running_elastic(), key=lambda job: (job.tier, job.started_at, job.job_id)
    ):
        if len(job.allocations) >= job.shape.max_workers or job.job_id in pool.migrations:
            continue
        if len(plan.resizes) == RESIZES_PER_ROUND:
            plan.unfinished = True
            return
        movable_ms = movable_from_ms(job, pool.min_residency_ms, pool.time_scale)
        mark = len(draft.log)
        extra = take_extra(draft, job)
        if extra and movable_ms <= view.now and is_worth_it(pool, job, len(extra), view.now):
            plan.resizes.append(Resize(job, slots_by_rank(job) + extra))
            continue
        draft.rollback(mark)
        if extra and movable_ms != NEVER:
            plan.repeat_at(movable_ms if movable_ms > view.now else view.now + again_ms)


def take_extra(draft: Draft, job: Job) -> list[Slot]:
    """Return free slots beside its own, no slower than its slowest; taken on the draft."""
    board = draft.board
    if not all(board.is_indexed(slot) for slot in slots_by_rank(job)):
        return []
    slowest = min(board.health(name) for name in job.nodes)
    slower = tuple(sorted(name for name in board.slow if board.health(name) < slowest))
    missing = job.shape.max_workers - len(job.allocations)
    shape = job.shape._replace(min_workers=1, max_workers=missing)
    return place(draft, shape, (*job.avoid, *slower))


def is_worth_it(pool: Pool, job: Job, extra: int, now: int) -> bool:
    """Whether `extra` more workers save enough; the rule is at the top, in cluster seconds."""
    workers = len(job.allocations)
    saved_s = left_s(pool, job, now) * (1 - workers / (workers + extra))
    restart_s = job.spec.simulated.restart_s if job.spec.simulated else 0.0
    return saved_s >= max(LEAST_S, WORTH * (job.lost_work_s(now, pool.time_scale) + restart_s))


def left_s(pool: Pool, job: Job, now: int) -> float:
    """Return the cluster seconds that it would still run with the workers that it has."""
    ran_s = job.ran_ms(now) / 1000 * pool.time_scale
    if job.spec.walltime_s is None:
        return ran_s
    left = job.spec.walltime_s * job.spec.gang.workers / len(job.allocations) - ran_s
    return left if left > 0 else ran_s
