"""The facts of an instant: jobs end and arrive, and the waiting are ranked (rules 1 and 2)."""

from __future__ import annotations

from simulator.kernel import attempts, easy, entitlement, estimates, forecast, learned, queue
from simulator.kernel.codes import LARGE_RECENT, LEARNED, MAX_SETTLE_MS, NEVER, SETTLE_MS
from simulator.kernel.compiled import compiled
from simulator.kernel.state import PackedRules, PoolState, Sim


@compiled
def next_fact_ms(sim: Sim) -> int:
    """Return the next instant with facts; waiting jobs need rankings and ends of residencies."""
    pool = sim.pool
    next_ms = NEVER
    if pool.arrived < len(sim.jobs):
        next_ms = sim.jobs[pool.arrived].submit_ms
    if pool.running:
        next_ms = min(next_ms, sim.ends[0].at_ms)
    if pool.waiting:
        next_ms = min(next_ms, pool.again_at_ms, refresh_ms(pool, sim.rules))
    return next_ms


@compiled
def refresh_ms(pool: PoolState, rules: PackedRules) -> int:
    """Return when an unchanged queue is ranked again, NEVER if that cannot matter."""
    if rules.preempts_by_rank:
        return pool.ranked_at_ms + rules.refresh_ms
    return learned.next_context_ms(pool, rules) if rules.policy == LEARNED else NEVER


@compiled
def apply_facts(sim: Sim, now: int) -> None:
    """Apply all facts of this instant; they are changes, which a round follows.

    Without preemption by rank a mere ranking is no change.
    """
    pool = sim.pool
    waited = pool.waiting > 0
    refreshed = waited and now == refresh_ms(pool, sim.rules)
    scan_again = waited and now == pool.again_at_ms
    ended = end_jobs(sim, now)
    admitted = admit_jobs(sim, now)
    ranks = pool.waiting > 0 and (refreshed or ended or admitted)
    if ranks and queue.mark_ranked(pool, sim.rules, now):
        queue.refresh_context(sim, now)
    if scan_again:
        pool.again_at_ms = NEVER
    if ended or admitted or scan_again or sim.rules.preempts_by_rank:
        settle(pool, now)


@compiled
def settle(pool: PoolState, now: int) -> None:
    """Postpone the next round by a change now; changes with an empty queue are dropped."""
    if pool.waiting == 0:
        pool.first_change_ms = NEVER
        pool.round_at_ms = NEVER
        return
    if pool.first_change_ms == NEVER:
        pool.first_change_ms = now
    pool.round_at_ms = min(now + SETTLE_MS, pool.first_change_ms + MAX_SETTLE_MS)


@compiled
def end_jobs(sim: Sim, now: int) -> bool:
    """End the jobs that are due and return whether any ended."""
    any_ended = False
    while sim.pool.running and sim.ends[0].at_ms == now:
        attempts.end(sim, sim.ends[0].job, now)
        any_ended = True
    return any_ended


@compiled
def admit_jobs(sim: Sim, now: int) -> bool:
    """Admit the jobs that arrive now and return whether any did."""
    pool, any_came = sim.pool, False
    while pool.arrived < len(sim.jobs) and sim.jobs[pool.arrived].submit_ms == now:
        admit(sim, pool.arrived, now)
        pool.arrived += 1
        any_came = True
    return any_came


@compiled
def admit(sim: Sim, j: int, now: int) -> None:
    """Admit a job with its run-time distribution, and enqueue it."""
    pool, rules, job = sim.pool, sim.rules, sim.jobs[j]
    if rules.has_distributions:
        estimates.fill_distribution(sim.groups[j], sim.counts, sim.distributions[j])
    if rules.easy_by_history:
        job.walltime_ms = easy.predicted_ms(sim.distributions[j])
    if rules.policy == LEARNED:
        job.run_s = forecast.forecast_of(sim, j, 0.0).left_s
    elif rules.by_history:
        job.run_s = forecast.left_s(sim, j, 0.0)
    if rules.policy == LEARNED:
        own = sim.distributions[forecast.known_row(sim, j)]
        learned.set_job_features(job, own, rules.capacity)
    is_large = 1.0 if job.gang > rules.large_gang_share * rules.capacity else 0.0
    pool.large += (is_large - pool.large) / LARGE_RECENT
    entitlement.count_job(sim, j, 1)
    queue.enqueue(sim, j, now)
