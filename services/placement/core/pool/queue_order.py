"""The order of a pool's queue: of its ranks, and changed by new ones where they differ."""

from __future__ import annotations

from collections.abc import Mapping

from services.placement.core.pool.queue import Queue
from services.placement.core.pool.ranks import Ranks
from services.placement.core.pool.state import Pool


def queue_by(pool: Pool, scores: Mapping[str, float]) -> Queue:
    """Return the waiting jobs in the order of these scores."""
    queue = Queue()
    for job in pool.waiting.values():
        queue.groups.setdefault(pool.equivalence_class(job), []).append(job.queue_key(scores))
    for group in queue.groups.values():
        group.sort()
    return queue


def rebuild_queue(pool: Pool) -> None:
    """Sort the queue anew."""
    pool.queue = queue_by(pool, pool.ranks.scores)


def apply_ranks(pool: Pool, ranks: Ranks) -> None:
    """Take over a new order; only entries whose score has changed are moved."""
    _predict(pool, ranks)
    old, new = pool.ranks.scores, ranks.scores
    pool.ranks = ranks
    if old == new:
        return
    waiting = pool.waiting
    names = waiting if len(waiting) <= len(new) else {**old, **new}
    moved = [name for name in names if name in waiting and old.get(name) != new.get(name)]
    if len(moved) > len(waiting) // 4:
        rebuild_queue(pool)
        return
    for job in map(waiting.__getitem__, moved):
        equivalence_class = pool.equivalence_class(job)
        pool.queue.remove(equivalence_class, job.queue_key(old))
        pool.queue.add(equivalence_class, job.queue_key(new))


def _predict(pool: Pool, ranks: Ranks) -> None:
    """Take over the run times of a new order: the class of a waiting job depends on its own."""
    if not (ranks.run_s or pool.ranks.run_s):
        return
    for job in [pool.waiting[name] for name in ranks.scores if name in pool.waiting]:
        run_s = ranks.run_s.get(job.job_id)
        if job.predicted_s != run_s:
            key = job.queue_key(pool.ranks.scores)
            pool.queue.remove(pool.equivalence_class(job), key)
            job.predicted_s = run_s
            pool.queue.add(pool.equivalence_class(job), key)
