"""An elastic job shrinks for the first job in the queue that does not fit.

That job is of its own class or a higher one and not spot, and what is given up is enough to start
it; no job is preempted for it then. As few jobs as possible give up as few workers as possible,
the lowest class first. Each goes on with what it keeps, which no other job can take in between.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.moves.plan_check import RESIZES_PER_ROUND
from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.draft import Draft
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import SPOT_TIER, Slot
from services.placement.core.pool.state import Pool
from services.placement.core.round.evict import probe
from services.placement.core.round.greedy import GREEDY
from services.placement.core.round.plan import Plan, Resize
from services.placement.core.round.protection import movable_from_ms
from services.placement.core.round.view import View


def shrink(pool: Pool, view: View, draft: Draft, plan: Plan) -> None:
    """Shrink jobs for the first one that the plan does not start; its evictions are withdrawn.

    One job at a time: while it waits for what others give up no more of them shrink.
    """
    blocked = first_blocked(view, plan)
    if blocked is None or blocked.tier >= SPOT_TIER:
        return
    if any(eviction.by is not blocked for eviction in plan.evictions):
        return
    for assignment in plan.assignments:
        draft.take(assignment.slots)
    chosen = shortest_enough(draft, blocked, shrinkable(pool, view, blocked))
    if chosen:
        plan.evictions.clear()
        plan.resizes += least_resizes(draft, blocked, chosen)


def first_blocked(view: View, plan: Plan) -> Job | None:
    """Return the first job of the queue that could start now and that the plan does not start."""
    starting = {assignment.job.job_id for assignment in plan.assignments}
    for job in GREEDY.rank(view):
        if job.job_id not in starting and job.not_before <= view.now:
            return job
    return None


def shrinkable(pool: Pool, view: View, blocked: Job) -> list[Job]:
    """Return jobs that may shrink: lowest class first, then least lost work, ties by job id."""
    jobs = [
        job
        for job in pool.running_elastic()
        if job.tier >= blocked.tier
        and len(job.allocations) > job.shape.min_workers
        and movable_from_ms(job, pool.min_residency_ms, pool.time_scale) <= view.now
        and all(view.board.is_indexed(slot) for slot in slots_by_rank(job))
    ]
    return sorted(jobs, key=lambda job: (-job.tier, view.lost_work_s(job), job.job_id))


def shortest_enough(draft: Draft, blocked: Job, jobs: list[Job]) -> list[Job]:
    """Return the first jobs that are enough when each is as small as it may be; else none.

    What they would give up is free on the draft then.
    """
    for count, job in enumerate(jobs[:RESIZES_PER_ROUND], 1):
        draft.give(release_order(job)[job.shape.min_workers :])
        if probe(draft, blocked.shape, blocked):
            return jobs[:count]
    return []


def least_resizes(draft: Draft, blocked: Job, chosen: list[Job]) -> Iterator[Resize]:
    """Let each job keep as many workers as it can, the last one first; skip those that keep all."""
    for job in reversed(chosen):
        slots = release_order(job)
        least, most = job.shape.min_workers, len(slots)
        draft.take(slots[least:])
        while least < most:
            middle = (least + most + 1) // 2
            if would_start(draft, blocked, slots[middle:]):
                least = middle
            else:
                most = middle - 1
        draft.give(slots[least:])
        if least < len(slots):
            stay = set(slots[:least])
            yield Resize(job, [slot for slot in slots_by_rank(job) if slot in stay], blocked)


def would_start(draft: Draft, blocked: Job, released: list[Slot]) -> bool:
    """Whether the blocked job fits once these slots are released."""
    mark = len(draft.log)
    draft.give(released)
    fits = bool(probe(draft, blocked.shape, blocked))
    draft.rollback(mark)
    return fits


def release_order(job: Job) -> list[Slot]:
    """Return its slots, the last to be released first: those on nodes with most of its workers."""
    slots = slots_by_rank(job)
    on_node: dict[str, int] = {}
    for slot in slots:
        on_node[slot.node_id] = on_node.get(slot.node_id, 0) + 1
    return sorted(slots, key=lambda slot: (-on_node[slot.node_id], slot.node_id, slot.gpus))
