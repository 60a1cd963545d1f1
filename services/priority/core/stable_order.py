"""Ranking by a policy with stable keys: jobs that waited before keep their place."""

from __future__ import annotations

from typing import Literal

import numpy as np

from services.priority.core.order_cache import OrderCache, Position
from services.priority.core.ordering import order_by
from services.priority.core.policies import POLICIES
from services.priority.core.queue_view import NO_ROWS, QueueView, ids_and_scores
from services.priority.core.runtimes import RunTimes
from services.priority.core.sorting import lowest_running
from services.priority.core.state import Queue
from services.priority.core.table import RUNNING
from shared.contracts.access import PoolConfigured, RuntimeSource
from shared.contracts.construct import construct
from shared.contracts.ranking import RUNNING_MOST, QueueRanked, Ranked


def rank_stable(queue: Queue, pool: PoolConfigured, now: int) -> QueueRanked:
    """Rank the pool, looking only at jobs that began or ceased to wait."""
    cache = refresh_order(queue, pool, now)
    runtime: RuntimeSource | Literal["none"] = "none"
    terms: dict[str, float] = {}
    if cache.uses_runtime:
        runtime = POLICIES[pool.base_policy].source or pool.runtime
        terms = RunTimes(queue.view(now), runtime, used=True).terms()
    return construct(
        QueueRanked,
        pool=queue.name,
        base_policy=pool.base_policy,
        runtime=runtime,
        ranked=cache.first(),
        running=rank_running(queue, pool, now) if pool.preemption == "ranked" else (),
        waiting=len(queue.waiting),
        terms=terms | queue.accuracy.terms(),
    )


def rank_running(queue: Queue, pool: PoolConfigured, now: int) -> tuple[Ranked, ...]:
    """Return the jobs on GPUs, lowest first."""
    view = QueueView(queue.table, queue.clock(now), 0.0, NO_ROWS, queue.table.of(RUNNING))
    scores = order_by(pool.base_policy, queue, view, now, pool.runtime).scores
    lowest = lowest_running(view, scores, RUNNING_MOST)
    return tuple(
        construct(Ranked, job_id=job, score=score)
        for job, score in ids_and_scores(view, scores, lowest)
    )


def refresh_order(queue: Queue, pool: PoolConfigured, now: int) -> OrderCache:
    """Bring the cached order up to date."""
    cache = queue.order_cache
    key = (pool.base_policy, pool.runtime, pool.time_scale, queue.origin)
    if cache.key != key:
        cache.begin(key, queue.waiting)
    if cache.stale:
        names = [name for name in cache.stale if name in queue.waiting]
        cache.drop_stale()
        if names:
            cache.insert(positions_of(queue, pool, now, names))
    return cache


def positions_of(queue: Queue, pool: PoolConfigured, now: int, names: list[str]) -> list[Position]:
    """Return the positions of waiting jobs."""
    rows = np.array([queue.jobs[name].row for name in names], np.intp)
    view = QueueView(queue.table, queue.clock(now), 0.0, rows, NO_ROWS)
    order = order_by(pool.base_policy, queue, view, now, pool.runtime)
    queue.order_cache.uses_runtime = order.runtime != "none"
    columns = (view.tier, -order.scores, view.submit_s, order.scores)
    values = zip(names, *(column.tolist() for column in columns), strict=True)
    return [
        (tier, behind, submit_s, name, construct(Ranked, job_id=name, score=score))
        for name, tier, behind, submit_s, score in values
    ]
