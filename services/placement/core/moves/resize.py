"""Elastic jobs grow into GPUs that nobody waits for, and shrink so that somebody can start.

A resize is a restart from the last checkpoint (`migrate.py` has the path): it is never free, so

- a job **grows** only while nobody waits, and only if the restart is worth it: it must save at
  least `LEAST_S` and `WORTH` times what the restart costs (the work since the last checkpoint and
  the restart itself), both in cluster seconds. Work is taken to be shared evenly by the workers.
  What is left of it is said by `walltime_s`; without one, or past it, a job is taken to be half
  done. It keeps the GPUs that it has and takes free ones beside them, no slower than its own.
- a job **shrinks** only for the first job in line that does not fit, if that one is of its own
  class or a higher one and not spot, where that is enough to let it start; nobody is preempted
  for that one then. As few jobs as possible give up as few workers as possible, the lowest class
  first. It goes on with what it keeps: nobody can take that in between.

Neither happens to a job that may not be preempted, is inside its guarantee, or started less than
`min_residency_s` ago: so at most once per that time, and no job grows and shrinks for ever.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.lifecycle import gangs
from services.placement.core.moves.migrate import (
    NEVER,
    in_use,
    lost_work_s,
    movable_from_ms,
    set_off,
)
from services.placement.core.pool.allocations import allocations_of, slot_of, slots_by_rank
from services.placement.core.pool.board import Draft
from services.placement.core.pool.evolve import folds
from services.placement.core.pool.shape import SPOT_TIER, Slot
from services.placement.core.pool.state import Job, Pool
from services.placement.core.round.evict import probe
from services.placement.core.round.fit import place
from services.placement.core.round.greedy import GREEDY
from services.placement.core.round.view import Plan, Resize, View
from shared.contracts.checkpoint import wall_ms
from shared.contracts.placement import JobResized
from shared.ledger.decider import Decision, Fact

RESIZES_PER_ROUND = 4
WORTH = 2.0
LEAST_S = 60.0


def running_elastic(pool: Pool) -> list[Job]:
    """In the order in which they started."""
    jobs = (pool.running.get(job_id) for job_id in pool.elastic)
    return [job for job in jobs if job is not None and job.phase == "running"]


def may_grow(pool: Pool) -> bool:
    """A round is worth it although nobody waits."""
    if not pool.elastic or pool.waiting:
        return False
    return any(len(job.allocations) < job.shape.max_workers for job in running_elastic(pool))


def propose(pool: Pool, view: View, plan: Plan) -> None:
    """Add to the plan who should grow or shrink; the view's board is as before."""
    if not pool.elastic:
        return
    draft = Draft(view.board)
    try:
        if not view.waiting:
            grow(pool, view, draft, plan)
        elif not view.reservations:
            shrink(pool, view, draft, plan)
    finally:
        draft.rollback()


# ---- grow -----------------------------------------------------------------------------------


def grow(pool: Pool, view: View, draft: Draft, plan: Plan) -> None:
    """The highest class first; who is too young, or not worth it yet, is looked at again."""
    look_ms = max(1, wall_ms(LEAST_S, pool.time_scale))
    for job in sorted(
        running_elastic(pool), key=lambda job: (job.tier, job.started_at, job.job_id)
    ):
        if len(job.allocations) >= job.shape.max_workers or job.job_id in pool.migrations:
            continue
        if len(plan.resizes) == RESIZES_PER_ROUND:
            plan.unfinished = True
            return
        ripe = movable_from_ms(pool, job)
        mark = len(draft.log)
        extra = more(draft, job)
        if extra and ripe <= view.now and is_worth_it(pool, job, len(extra), view.now):
            plan.resizes.append(Resize(job, slots_by_rank(job) + extra))
            continue
        draft.rollback(mark)
        if extra and ripe != NEVER:
            plan.again(ripe if ripe > view.now else view.now + look_ms)


def more(draft: Draft, job: Job) -> list[Slot]:
    """Free slots beside its own, on nodes no slower than its slowest; taken on the draft."""
    board = draft.board
    if not all(in_use(board, slot) for slot in slots_by_rank(job)):
        return []
    slowest = min(board.health(name) for name in job.nodes)
    worse = tuple(sorted(name for name in board.slow if board.health(name) < slowest))
    wanted = job.shape.max_workers - len(job.allocations)
    shape = job.shape._replace(min_workers=1, max_workers=wanted)
    return place(draft, shape, (*job.avoid, *worse))


def is_worth_it(pool: Pool, job: Job, extra: int, now: int) -> bool:
    """See the rule above; all in cluster seconds."""
    workers = len(job.allocations)
    saved_s = left_s(pool, job, now) * (1 - workers / (workers + extra))
    restart_s = job.spec.simulated.restart_s if job.spec.simulated else 0.0
    return saved_s >= max(LEAST_S, WORTH * (lost_work_s(pool, job, now) + restart_s))


def left_s(pool: Pool, job: Job, now: int) -> float:
    """Cluster seconds that it would still run with the workers that it has."""
    ran_s = job.ran_ms(now) / 1000 * pool.time_scale
    if job.spec.walltime_s is None:
        return ran_s
    left = job.spec.walltime_s * job.spec.gang.workers / len(job.allocations) - ran_s
    return left if left > 0 else ran_s


# ---- shrink ---------------------------------------------------------------------------------


def shrink(pool: Pool, view: View, draft: Draft, plan: Plan) -> None:
    """For the first job in line that the plan does not start; evictions for it are taken back.

    One job at a time: while it waits for what others give up nobody else is asked.
    """
    blocked = first_passed_over(view, plan)
    if blocked is None or blocked.tier >= SPOT_TIER:
        return
    if any(eviction.by is not blocked for eviction in plan.evictions):
        return
    for assignment in plan.places:
        draft.take(assignment.slots)
    donors_ = list(donors(pool, view, blocked))
    candidate = enough(draft, blocked, donors_)
    if candidate:
        plan.evictions.clear()
        plan.resizes += spared(draft, blocked, candidate)


def first_passed_over(view: View, plan: Plan) -> Job | None:
    placed = {assignment.job.job_id for assignment in plan.places}
    for job in GREEDY.rank(view):
        if job.job_id not in placed and job.not_before <= view.now:
            return job
    return None


def donors(pool: Pool, view: View, blocked: Job) -> Iterator[Job]:
    """The lowest class first, in it the least lost work, ties by job id."""
    found = [
        job
        for job in running_elastic(pool)
        if job.tier >= blocked.tier
        and len(job.allocations) > job.shape.min_workers
        and movable_from_ms(pool, job) <= view.now
        and all(in_use(view.board, slot) for slot in slots_by_rank(job))
    ]
    lost = view.victims.lost_work_s
    yield from sorted(found, key=lambda job: (-job.tier, lost(job), job.job_id))


def enough(draft: Draft, blocked: Job, donors_: list[Job]) -> list[Job]:
    """The first of them that are enough when each is as small as it may be; none if too many.

    What they would give up is free on the draft then.
    """
    for count, job in enumerate(donors_[:RESIZES_PER_ROUND], 1):
        draft.give(release_order(job)[job.shape.min_workers :])
        if probe(draft, blocked.shape, blocked):
            return donors_[:count]
    return []


def spared(draft: Draft, blocked: Job, candidate: list[Job]) -> Iterator[Resize]:
    """Each keeps as many workers as it can, the last one asked first; who keeps all is let off."""
    for job in reversed(candidate):
        slots = release_order(job)
        least, most = job.shape.min_workers, len(slots)
        draft.take(slots[least:])
        while least < most:
            middle = (least + most + 1) // 2
            if starts(draft, blocked, slots[middle:]):
                least = middle
            else:
                most = middle - 1
        draft.give(slots[least:])
        if least < len(slots):
            reserved = set(slots[:least])
            stay = [slot for slot in slots_by_rank(job) if slot in reserved]
            yield Resize(job, stay, blocked)


def starts(draft: Draft, blocked: Job, given: list[Slot]) -> bool:
    mark = len(draft.log)
    draft.give(given)
    fits = bool(probe(draft, blocked.shape, blocked))
    draft.rollback(mark)
    return fits


def release_order(job: Job) -> list[Slot]:
    """Its slots, those that it gives up last first: of the nodes where most of its workers are."""
    slots = slots_by_rank(job)
    on_node: dict[str, int] = {}
    for slot in slots:
        on_node[slot.node_id] = on_node.get(slot.node_id, 0) + 1
    return sorted(slots, key=lambda slot: (-on_node[slot.node_id], slot.node_id, slot.gpus))


# ---- said and folded ------------------------------------------------------------------------


def resized(pool: Pool, resize: Resize, now: int) -> Decision:
    job, by = resize.job, resize.by
    event = JobResized(
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        reason="shrink" if by else "grow",
        from_workers=len(job.allocations),
        to_workers=len(resize.slots),
        target=allocations_of(resize.slots),
        by_job_id=by.job_id if by else "",
        lost_work_s=lost_work_s(pool, job, now),
    )
    return gangs.said(job, by.cause if by else "", event)


@folds(JobResized)
def on_resized(event: JobResized, pool: Pool, fact: Fact) -> None:
    job = pool.jobs[event.job_id]
    set_off(pool, job, "resized", map(slot_of, event.target), fact.at)
    job.by = event.by_job_id
    if event.by_job_id:
        pool.reservations.setdefault(event.by_job_id, {})[event.job_id] = None
