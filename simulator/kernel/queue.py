"""Who waits, in the order of rule 3: key, `submitted_at`, job id; claims go first in a round."""

from __future__ import annotations

from simulator.kernel import learned, ranking
from simulator.kernel.codes import CONTEXT_MS, LEARNED, MULTIFACTOR, WAITING, WFP3
from simulator.kernel.compiled import compiled
from simulator.kernel.sorting import sort
from simulator.kernel.state import Ints, Jobs, Pool, Rules, Sim


@compiled
def is_aging(rules: Rules) -> bool:
    """Do keys change with the wait? Then the queue is sorted anew in every round."""
    return WFP3 <= rules.policy <= MULTIFACTOR


@compiled
def place_in(queue: Ints, count: int, jobs: Jobs, j: int) -> int:
    """How many of the queue go before the job."""
    job = jobs[j]
    low, high = 0, count
    while low < high:
        mid = (low + high) // 2
        other = jobs[queue[mid]]
        if other.key < job.key or (other.key == job.key and other.seniority < job.seniority):
            low = mid + 1
        else:
            high = mid
    return low


@compiled
def join(sim: Sim, j: int, now: int) -> None:
    """The job waits from now on."""
    pool, queue, job = sim.pool, sim.queue, sim.jobs[j]
    job.state = WAITING
    ranking.rank_waiting(sim, j, now)
    at = pool.waiting
    if not is_aging(sim.rules):
        at = place_in(queue, pool.waiting, sim.jobs, j)
    for i in range(pool.waiting, at, -1):
        queue[i] = queue[i - 1]
    queue[at] = j
    pool.waiting += 1
    shape = sim.shapes[job.kind]
    shape.waiting += 1
    if shape.waiting == 1:
        pool.waiting_shapes += 1


@compiled
def copy(source: Ints, target: Ints, count: int) -> None:
    """Slices are no choice: where there is no memory to allocate, numba has none."""
    for at in range(count):
        target[at] = source[at]


@compiled
def ranked(pool: Pool, rules: Rules, now: int) -> bool:
    """A ranking, as the live service makes one: must networks be told anew of the pool?"""
    pool.ranked_at_ms = now
    return rules.policy == LEARNED and now >= pool.context_at_ms + CONTEXT_MS


@compiled
def look_again(sim: Sim, now: int) -> None:
    """Networks are told of the pool, so all keys are others."""
    learned.look(sim, now)
    rank_all(sim, now)


@compiled
def rank_all(sim: Sim, now: int) -> None:
    """New keys for all that wait, and their order."""
    queue, rows, count = sim.queue, sim.sorting, sim.pool.waiting
    for i in range(count):
        ranking.rank_waiting(sim, queue[i], now)
        job = sim.jobs[queue[i]]
        rows[i].value = job.key
        rows[i].tie = job.seniority
    sort(rows, count)
    for i in range(count):
        sim.line[i] = queue[rows[i].order]
    copy(sim.line, queue, count)


@compiled
def line_up(sim: Sim) -> None:
    """Fills `line`: who claims what its victims left goes first."""
    queue, line, jobs, count = sim.queue, sim.line, sim.jobs, sim.pool.waiting
    if sim.pool.claims == 0:
        copy(queue, line, count)
        return
    at = 0
    for i in range(count):
        if jobs[queue[i]].claim:
            line[at] = queue[i]
            at += 1
    for i in range(count):
        if not jobs[queue[i]].claim:
            line[at] = queue[i]
            at += 1


@compiled
def end_claims(sim: Sim) -> None:
    """A claim has its turn in the round after that which made others stop (rule 10)."""
    pool = sim.pool
    for i in range(pool.waiting):
        job = sim.jobs[sim.queue[i]]
        if 0 < job.claim < pool.rounds:
            job.claim = 0
            pool.claims -= 1


@compiled
def close_up(sim: Sim) -> None:
    """Those who started have left the queue."""
    take_out(sim, 0 if sim.walk.claimed else sim.gone[0])


@compiled
def take_out(sim: Sim, first: int) -> None:
    """Whoever waits no more, from that place of the queue on."""
    pool, queue = sim.pool, sim.queue
    left = first
    for i in range(left, pool.waiting):
        if sim.jobs[queue[i]].state == WAITING:
            queue[left] = queue[i]
            left += 1
    pool.waiting = left
