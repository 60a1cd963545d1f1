"""An elastic job grows while no job waits, if the restart is worth it.

It must save at least `LEAST_S` and `WORTH` times what the restart costs (the work since the last
checkpoint and the restart itself), both in cluster seconds. Work is taken to be shared evenly by
the workers. `walltime_s` says what is left of it; without one, or past it, a job is taken to be
half done. It keeps the GPUs that it has and takes free ones beside them, no slower than its own.
"""

from __future__ import annotations

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.resize.elastic import RESIZES_PER_ROUND, ElasticJob
from services.placement.core.round.fit import probe
from services.placement.core.round.plan import Plan, Resize
from services.placement.core.round.progress import NEVER
from services.placement.core.round.view import View
from shared.contracts.checkpoint import wall_ms

WORTH = 2.0
LEAST_S = 60.0


def grow(jobs: list[ElasticJob], view: View, trial: Trial, plan: Plan) -> None:
    """Grow jobs, the highest class first; request another round where one may grow later."""
    again_ms = max(1, wall_ms(LEAST_S, view.time_scale))
    for elastic in sorted(jobs, key=in_order):
        job, movable_ms = elastic.job, elastic.movable_ms
        if len(job.allocations) >= job.shape.max_workers:
            continue
        if len(plan.resizes) == RESIZES_PER_ROUND:
            plan.unfinished = True
            return
        extra = extra_slots(trial, elastic)
        if extra and movable_ms <= view.now and is_worth_it(view, elastic, len(extra)):
            trial.take(extra)
            plan.resizes.append(Resize(job, elastic.slots + extra))
        elif extra and movable_ms != NEVER:
            plan.repeat_at(movable_ms if movable_ms > view.now else view.now + again_ms)


def in_order(elastic: ElasticJob) -> tuple[int, int, str]:
    """Return the key of the order in which jobs grow."""
    return elastic.job.tier, elastic.job.started_at, elastic.job.job_id


def extra_slots(trial: Trial, elastic: ElasticJob) -> list[Slot]:
    """Return free slots beside its own, no slower than its slowest."""
    if not elastic.is_in_use:
        return []
    board, job = trial.board, elastic.job
    slowest = min(board.health(name) for name in job.nodes)
    slower = tuple(sorted(name for name in board.slow if board.health(name) < slowest))
    missing = job.shape.max_workers - len(job.allocations)
    shape = job.shape._replace(min_workers=1, max_workers=missing)
    return probe(trial, shape, (*job.avoid, *slower))


def is_worth_it(view: View, elastic: ElasticJob, extra: int) -> bool:
    """Return whether `extra` more workers save enough; the rule is at the top, in cluster
    seconds.
    """
    job, workers = elastic.job, len(elastic.slots)
    saved_s = left_s(view, job) * (1 - workers / (workers + extra))
    restart_s = job.restart_s(view.time_scale)
    return saved_s >= max(LEAST_S, WORTH * (elastic.lost_work_s + restart_s))


def left_s(view: View, job: Job) -> float:
    """Return the cluster seconds that it would still run with the workers that it has."""
    ran_s = job.ran_ms(view.now) / 1000 * view.time_scale
    if job.spec.walltime_s is None:
        return ran_s
    left = job.spec.walltime_s * job.spec.gang.workers / len(job.allocations) - ran_s
    return left if left > 0 else ran_s
