"""An elastic job shrinks for the first job in the queue that does not fit.

That job is of its own class or a higher one and not spot, and what is given up is enough to start
it; no job is preempted for it then. As few jobs as possible give up as few workers as possible,
the lowest class first. Each goes on with what it keeps, which no other job can take in between.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import SPOT_TIER, Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.resize.elastic import RESIZES_PER_ROUND, ElasticJob
from services.placement.core.round.fit import probe_anywhere
from services.placement.core.round.plan import Plan, Resize
from services.placement.core.round.view import View


def shrink(jobs: list[ElasticJob], view: View, trial: Trial, plan: Plan) -> None:
    """Shrink jobs for the first one that the plan does not start; its evictions are withdrawn.

    One job at a time: while it waits for what others give up no more of them shrink. The trial is
    the board after the plan's assignments.
    """
    blocked = plan.first_blocked
    if blocked is None or blocked.tier >= SPOT_TIER or blocked.spec.measures is not None:
        return
    if any(eviction.by is not blocked for eviction in plan.evictions):
        return
    shrinking = [Shrinking(elastic) for elastic in shrinkable(jobs, view.now, blocked)]
    enough = first_enough(trial, blocked, shrinking[:RESIZES_PER_ROUND])
    if enough:
        plan.evictions.clear()
        plan.resizes += least_resizes(trial, blocked, enough)


def shrinkable(jobs: list[ElasticJob], now: int, blocked: Job) -> list[ElasticJob]:
    """Return jobs that may shrink: lowest class first, then least lost work, ties by job id."""
    able = [
        elastic
        for elastic in jobs
        if elastic.job.tier >= blocked.tier
        and len(elastic.slots) > elastic.job.shape.min_workers
        and elastic.movable_ms <= now
        and elastic.is_in_use
    ]
    return sorted(
        able, key=lambda elastic: (-elastic.job.tier, elastic.lost_work_s, elastic.job.job_id)
    )


class Shrinking:
    """A job that may shrink, its slots in the order in which they are kept."""

    def __init__(self, elastic: ElasticJob) -> None:
        self.job = elastic.job
        self._by_rank = elastic.slots
        self._slots = keep_order(elastic.slots)
        self.least, self.most = self.job.shape.min_workers, len(self._slots)
        self.workers = self.least
        """Workers that it keeps."""

    def released(self) -> list[Slot]:
        """Return the slots that it gives up, the last of their order."""
        return self._slots[self.workers :]

    def kept(self) -> list[Slot]:
        """Return the slots that it goes on with, in rank order."""
        kept = set(self._slots[: self.workers])
        return [slot for slot in self._by_rank if slot in kept]


def first_enough(trial: Trial, blocked: Job, shrinking: list[Shrinking]) -> list[Shrinking]:
    """Return the first jobs that are enough when each is as small as it may be; else none."""
    for count in range(1, len(shrinking) + 1):
        if would_start(trial, blocked, shrinking[:count]):
            return shrinking[:count]
    return []


def least_resizes(trial: Trial, blocked: Job, enough: list[Shrinking]) -> Iterator[Resize]:
    """Let each job keep as many workers as it can, the last one first; skip those that keep all."""
    for shrinking in reversed(enough):
        least, most = shrinking.least, shrinking.most
        while least < most:
            shrinking.workers = (least + most + 1) // 2
            if would_start(trial, blocked, enough):
                least = shrinking.workers
            else:
                most = shrinking.workers - 1
        shrinking.workers = least
        if least < shrinking.most:
            yield Resize(shrinking.job, shrinking.kept(), blocked)


def would_start(trial: Trial, blocked: Job, shrinking: list[Shrinking]) -> bool:
    """Return whether the blocked job fits on what these jobs give up."""
    released = [slot for job in shrinking for slot in job.released()]
    return bool(probe_anywhere(trial, blocked.shape, blocked, released))


def keep_order(slots: list[Slot]) -> list[Slot]:
    """Return the slots, those on nodes with most of the workers first: they are kept longest."""
    on_node: dict[str, int] = {}
    for slot in slots:
        on_node[slot.node_id] = on_node.get(slot.node_id, 0) + 1
    return sorted(slots, key=lambda slot: (-on_node[slot.node_id], slot.node_id, slot.gpus))
