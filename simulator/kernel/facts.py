"""The facts of an instant: jobs end, jobs come, and those who wait are ranked (rules 1 and 2)."""

from __future__ import annotations

from simulator.kernel import attempts, learned
from simulator.kernel import estimates as past
from simulator.kernel import forecast as outlook
from simulator.kernel import queue as line
from simulator.kernel.codes import LARGE_RECENT, LEARNED, NEVER, SETTLE_MOST_MS, SETTLE_MS
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Pool, Rules, Sim


@compiled
def next_ms(sim: Sim) -> int:
    """The next instant with facts; who waits asks for rankings and for residencies to be over."""
    pool = sim.pool
    found = NEVER
    if pool.arrived < len(sim.jobs):
        found = sim.jobs[pool.arrived].submit_ms
    if pool.running:
        found = min(found, sim.ends[0].at_ms)
    if pool.waiting:
        found = min(found, pool.again_at_ms, refresh_ms(pool, sim.rules))
    return found


@compiled
def refresh_ms(pool: Pool, rules: Rules) -> int:
    """When an unchanged line is ranked again, if that could matter."""
    if rules.ranked:
        return pool.ranked_at_ms + rules.refresh_ms
    return learned.next_look_ms(pool, rules) if rules.policy == LEARNED else NEVER


@compiled
def happen(sim: Sim, now: int) -> None:
    """All facts of this instant; they are changes, which a round follows. Where rank stops nobody
    a mere ranking is none."""
    pool = sim.pool
    waited = pool.waiting > 0
    refreshed = waited and now == refresh_ms(pool, sim.rules)
    asked = waited and now == pool.again_at_ms
    ended = end_jobs(sim, now)
    came = admit_jobs(sim, now)
    ranks = pool.waiting > 0 and (refreshed or ended or came)
    if ranks and line.ranked(pool, sim.rules, now):
        line.look_again(sim, now)
    if asked:
        pool.again_at_ms = NEVER
    if ended or came or asked or sim.rules.ranked:
        settle(pool, now)


@compiled
def settle(pool: Pool, now: int) -> None:
    """A change at this moment pushes the next round; while nobody waits changes are forgotten."""
    if pool.waiting == 0:
        pool.first_change_ms = NEVER
        pool.round_at_ms = NEVER
        return
    if pool.first_change_ms == NEVER:
        pool.first_change_ms = now
    pool.round_at_ms = min(now + SETTLE_MS, pool.first_change_ms + SETTLE_MOST_MS)


@compiled
def end_jobs(sim: Sim, now: int) -> bool:
    """Did any end?"""
    some = False
    while sim.pool.running and sim.ends[0].at_ms == now:
        attempts.end(sim, sim.ends[0].job, now)
        some = True
    return some


@compiled
def admit_jobs(sim: Sim, now: int) -> bool:
    """Did any come?"""
    pool, some = sim.pool, False
    while pool.arrived < len(sim.jobs) and sim.jobs[pool.arrived].submit_ms == now:
        admit(sim, pool.arrived, now)
        pool.arrived += 1
        some = True
    return some


@compiled
def admit(sim: Sim, j: int, now: int) -> None:
    """A job comes, and history says what it expects of it."""
    pool, rules, job = sim.pool, sim.rules, sim.jobs[j]
    p = sim.chances[j if rules.knows else 0]
    if rules.knows:
        past.expect(sim.groups[j], sim.counts, p)
    if rules.by_history or rules.policy == LEARNED:
        job.run_s = outlook.of(sim, j, 0.0).left_s
    if rules.policy == LEARNED:
        learned.meet(job, p, rules.capacity)
    is_large = 1.0 if job.gang > rules.large_share * rules.capacity else 0.0
    pool.large += (is_large - pool.large) / LARGE_RECENT
    line.join(sim, j, now)
