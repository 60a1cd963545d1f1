"""Entitled jobs: the scalar twin of priority's `ranking.entitlement`; all tenants weigh 1."""

from __future__ import annotations

from services.priority.core.policies.keys import LIFT
from simulator.kernel import ranking
from simulator.kernel.compiled import compiled
from simulator.kernel.sorting import sort
from simulator.kernel.state import JobRow, Sim


@compiled
def score_of(job: JobRow, key: float) -> float:
    """Return the job's score by that key."""
    return LIFT - key if job.entitled else -key


@compiled
def count_job(sim: Sim, j: int, change: int) -> None:
    """Count a job that arrives (1) or ends (-1) for its tenant, where tenants are entitled."""
    if sim.rules.tenant_floor <= 0.0:
        return
    tenant = sim.tenants[j]
    had_jobs = sim.present[tenant] > 0
    sim.present[tenant] += change
    sim.pool.tenants += int(sim.present[tenant] > 0) - int(had_jobs)


@compiled
def choose_entitled(sim: Sim) -> None:
    """Mark the entitled jobs of every tenant, as of the last ranking."""
    pool = sim.pool
    for k in range(pool.entitled):
        sim.jobs[sim.entitled[k]].entitled = False
    pool.entitled = pool.ahead = 0
    if pool.tenants < 2:
        return
    for t in range(len(sim.present)):
        sim.taken[t] = 0.0
        sim.left[t] = sim.present[t]
    limit = sim.rules.tenant_floor * sim.rules.capacity / pool.tenants
    sort_running(sim)
    walk(sim, limit)
    sim.scan.has_reservations = sim.scan.has_reservations or pool.ahead > 0


@compiled
def walk(sim: Sim, limit: float) -> None:
    """Walk through all jobs, best first, until no tenant is entitled to more."""
    pool = sim.pool
    open_tenants = pool.tenants
    i = k = 0
    while open_tenants:
        waits = k == pool.running or (i < pool.waiting and waits_ahead(sim, sim.queue[i], k))
        if waits:
            j = sim.queue[i]
            i += 1
        else:
            j = sim.running[sim.sorting[k].order].job
            k += 1
        tenant = sim.tenants[j]
        if sim.left[tenant] == 0:
            continue
        taken = sim.taken[tenant] + sim.jobs[j].gang
        if sim.taken[tenant] > 0.0 and taken > limit:
            sim.left[tenant] = 0
        else:
            sim.taken[tenant] = taken
            sim.left[tenant] -= 1
            mark(sim, j, i - 1 if waits else -1)
        open_tenants -= int(sim.left[tenant] == 0)


@compiled
def mark(sim: Sim, j: int, place: int) -> None:
    """Mark a job as entitled; `place` is that in the queue of one that waits, else -1."""
    pool = sim.pool
    sim.jobs[j].entitled = True
    sim.entitled[pool.entitled] = j
    pool.entitled += 1
    if place >= 0:
        sim.ahead[pool.ahead] = place
        pool.ahead += 1


@compiled
def sort_running(sim: Sim) -> None:
    """Sort the running jobs by key, which a waiting one has to undercut by the margin."""
    rows, count = sim.sorting, sim.pool.running
    for k in range(count):
        if sim.pool.ranked_at_ms >= sim.running[k].until_ms:
            ranking.rank_running(sim, k)
        rows[k].value = sim.running[k].key - sim.rules.preempt_margin
        rows[k].tie = sim.jobs[sim.running[k].job].seniority
    sort(rows, count)


@compiled
def waits_ahead(sim: Sim, j: int, k: int) -> bool:
    """Return whether a waiting job is better than the k-th of the sorted running ones."""
    job, row = sim.jobs[j], sim.sorting[sim.sorting[k].order]
    return job.key < row.value or (job.key == row.value and job.seniority < row.tie)
