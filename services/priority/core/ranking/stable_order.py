"""Ranking by a policy with stable keys: jobs that waited before keep their place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from services.priority.core.caches.order_cache import OrderCache, Position
from services.priority.core.caches.running_order import RunningPlace
from services.priority.core.policies.base_policies import POLICIES
from services.priority.core.policies.expected import holds_until
from services.priority.core.policies.ordering import score_by
from services.priority.core.policies.runtimes import RunTimes
from services.priority.core.queue.queue_view import NO_ROWS, QueueView
from services.priority.core.queue.table import RUNNING, WAITING, Rows
from services.priority.core.ranking import few_waiting
from services.priority.core.ranking.few_running import FEW, KEYS, running_row
from services.priority.core.ranking.running import prices_stops, running_jobs
from services.priority.core.ranking.waiting import published_run_s, run_times_of, waiting_jobs
from services.priority.core.state import PriorityState
from shared.contracts.construct import construct
from shared.contracts.pools import PoolConfigured, RuntimeSource
from shared.contracts.ranking import QueueRanked, Ranked


def rank_stable(queue: PriorityState, pool: PoolConfigured, now: int) -> QueueRanked:
    """Rank the pool, looking only at jobs that began or ceased to wait."""
    cache = refresh_order(queue, pool, now)
    runtime: RuntimeSource | Literal["none"] = "none"
    terms: dict[str, float] = {}
    if cache.uses_runtime:
        runtime = POLICIES[pool.base_policy].source or pool.runtime
        terms = runtime_terms(queue, now, runtime)
    return construct(
        QueueRanked,
        pool=queue.name,
        base_policy=pool.base_policy,
        runtime=runtime,
        ranked=cache.first(),
        running=rank_running(queue, pool, now) if pool.preemption == "ranked" else (),
        waiting=len(queue.waiting),
        terms=terms | queue.prediction_terms(),
    )


def runtime_terms(queue: PriorityState, now: int, runtime: RuntimeSource) -> dict[str, float]:
    """Return the number of jobs by the source of their run time, as `RunTimes.terms` does."""
    table = queue.table
    if runtime == "history":
        prior = table.counted - table.known
        counts = {"runtime.history": float(table.known), "runtime.prior": float(prior)}
        return {name: count for name, count in counts.items() if count}
    view = QueueView(table, queue.clock(now), 0.0, table.unordered(WAITING, RUNNING), NO_ROWS)
    return RunTimes(view, runtime, used=True).terms()


def rank_running(queue: PriorityState, pool: PoolConfigured, now: int) -> tuple[Ranked, ...]:
    """Return the jobs on GPUs, lowest first."""
    order = queue.running_order
    key = (pool.base_policy, pool.runtime, pool.time_scale, queue.origin, prices_stops(pool))
    if order.key != key or now < order.at:
        order.begin(key, now, queue.table.ids[queue.table.unordered(RUNNING)].tolist())
    jobs = [job for name in order.take_stale(now) if (job := queue.jobs.get(name))]
    rows = [job.row for job in jobs if job.phase == "running" and job.entry is not None]
    if rows:
        source = POLICIES[pool.base_policy].source or pool.runtime
        is_few = source == "history" and pool.base_policy in KEYS and len(rows) <= FEW
        order.insert(
            score_few(queue, pool, now, rows)
            if is_few
            else score_running(queue, pool, now, np.array(rows, np.intp))
        )
    return order.lowest()


def score_few(
    queue: PriorityState, pool: PoolConfigured, now: int, rows: list[int]
) -> Iterator[RunningPlace]:
    """Yield what `score_running` does, for a policy in `KEYS` under run times of history."""
    policy, key_of, has_price = (
        POLICIES[pool.base_policy],
        KEYS[pool.base_policy],
        prices_stops(pool),
    )
    for row in rows:
        job, until = running_row(queue.table, row, now, pool.time_scale)
        score, job_id = policy.score(key_of(job)), queue.table.ids[row]
        more = {"gittins_s": job.gittins_s} if has_price else {}
        ranked = construct(Ranked, job_id=job_id, score=score, **more)
        yield RunningPlace(score, job_id, ranked, until)


def score_running(
    queue: PriorityState, pool: PoolConfigured, now: int, rows: Rows
) -> Iterator[RunningPlace]:
    """Yield the jobs of these rows, with the moment until which their scores hold."""
    view = QueueView(queue.table, queue.clock(now), 0.0, NO_ROWS, rows)
    scores, times = score_by(pool.base_policy, queue, view, now, pool.runtime)
    fields = running_jobs(pool, view, scores, [*range(len(rows))])
    holds = POLICIES[pool.base_policy].holds_while_running(times.source)
    for job, until in zip(fields, holds_until(view, now, holds).tolist(), strict=True):
        ranked = construct(Ranked, **job)
        yield RunningPlace(ranked.score, ranked.job_id, ranked, until)


def refresh_order(queue: PriorityState, pool: PoolConfigured, now: int) -> OrderCache:
    """Bring the cached order up to date."""
    cache = queue.order_cache
    published = run_times_of(pool)
    key = (pool.base_policy, pool.runtime, pool.time_scale, queue.origin, published)
    if cache.key != key:
        cache.begin(key, queue.waiting)
    if cache.stale:
        names = [name for name in cache.stale if name in queue.waiting]
        cache.drop_stale()
        if names:
            is_few = pool.base_policy in few_waiting.KEYS and len(names) <= FEW
            place = few_positions if is_few else positions_of
            cache.insert(place(queue, pool, now, names))
    return cache


def few_positions(
    queue: PriorityState, pool: PoolConfigured, now: int, names: list[str]
) -> list[Position]:
    """Return what `positions_of` does, for a policy in `few_waiting.KEYS`."""
    policy, key_of = POLICIES[pool.base_policy], few_waiting.KEYS[pool.base_policy]
    source, published = policy.source or pool.runtime, run_times_of(pool)
    queue.order_cache.uses_runtime = pool.base_policy not in few_waiting.TIMELESS
    clock = queue.clock(now)
    positions = []
    for name in names:
        job = few_waiting.waiting_row(queue.table, queue.jobs[name].row, clock, source)
        score = policy.score(key_of(job))
        more = published_run_s(published, job.mean_s, job.samples, job.walltime_s)
        ranked = construct(Ranked, job_id=name, score=score, **more)
        positions.append((job.tier, -score, job.submit_s, name, ranked))
    return positions


def positions_of(
    queue: PriorityState, pool: PoolConfigured, now: int, names: list[str]
) -> list[Position]:
    """Return the positions of waiting jobs."""
    rows = np.array([queue.jobs[name].row for name in names], np.intp)
    view = QueueView(queue.table, queue.clock(now), 0.0, rows, NO_ROWS)
    scores, times = score_by(pool.base_policy, queue, view, now, pool.runtime)
    queue.order_cache.uses_runtime = times.used
    columns = (view.tier, -scores, view.submit_s)
    ranked = waiting_jobs(pool, view, scores, [*range(len(names))])
    values = zip(*(column.tolist() for column in columns), names, ranked, strict=True)
    return [
        (tier, behind, submit_s, name, construct(Ranked, **fields))
        for tier, behind, submit_s, name, fields in values
    ]
