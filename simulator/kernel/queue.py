"""The queue in the order of rule 3: key, `submitted_at`, job id; reservations first in a round."""

from __future__ import annotations

from services.priority.core.policies.keys import LIFT
from simulator.kernel import learned, ranking
from simulator.kernel.codes import CONTEXT_MS, LEARNED, MULTIFACTOR, WAITING, WFP3
from simulator.kernel.compiled import compiled
from simulator.kernel.sorting import sort
from simulator.kernel.state import Ints, Jobs, PackedRules, PoolState, Sim


@compiled
def is_aging(rules: PackedRules) -> bool:
    """Return whether keys change with the wait: then every round sorts the queue anew."""
    return WFP3 <= rules.policy <= MULTIFACTOR


@compiled
def queue_position(queue: Ints, count: int, jobs: Jobs, j: int) -> int:
    """Return how many jobs of the queue go before the job."""
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
def enqueue(sim: Sim, j: int, now: int) -> None:
    """Add the job to the queue."""
    pool, queue, job = sim.pool, sim.queue, sim.jobs[j]
    job.state = WAITING
    job.since_ms = now
    if pool.waiting == 0:
        pool.oldest_ms = now
    ranking.rank_waiting(sim, j, now)
    at = pool.waiting
    if not is_aging(sim.rules):
        at = queue_position(queue, pool.waiting, sim.jobs, j)
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
    """Copy the first `count` elements; slices would allocate, which compiled code cannot."""
    for at in range(count):
        target[at] = source[at]


@compiled
def mark_ranked(pool: PoolState, rules: PackedRules, now: int) -> bool:
    """Record a ranking, and return whether networks need a new context, as in the live service."""
    pool.ranked_at_ms = now
    return rules.policy == LEARNED and now >= pool.context_at_ms + CONTEXT_MS


@compiled
def refresh_context(sim: Sim, now: int) -> None:
    """Renew the networks' context, which changes all keys, and rank again."""
    learned.update_context(sim, now)
    rank_all(sim, now)


@compiled
def rank_all(sim: Sim, now: int) -> None:
    """Compute the keys of all waiting jobs, and sort the queue."""
    queue, rows, count = sim.queue, sim.sorting, sim.pool.waiting
    for i in range(count):
        ranking.rank_waiting(sim, queue[i], now)
        job = sim.jobs[queue[i]]
        rows[i].value = job.key
        rows[i].tie = job.seniority
    sort(rows, count)
    for i in range(count):
        sim.round_queue[i] = queue[rows[i].order]
    copy(sim.round_queue, queue, count)


@compiled
def order_round(sim: Sim) -> None:
    """Fill `round_queue`: jobs with a reservation first, then entitled ones."""
    if sim.pool.reservations == 0:
        put_entitled_first(sim)
        return
    at = take_in(sim, 0, True, True)
    order_lifted(sim, 0, at)
    first = take_in(sim, at, True, False)
    at = take_in(sim, first, False, True)
    order_lifted(sim, first, at)
    take_in(sim, at, False, False)


@compiled
def put_entitled_first(sim: Sim) -> None:
    """Fill `round_queue` with the entitled jobs, then with those between them."""
    pool, queue, round_queue = sim.pool, sim.queue, sim.round_queue
    if pool.ahead == 0:
        copy(queue, round_queue, pool.waiting)
        return
    at, first = pool.ahead, 0
    for k in range(pool.ahead):
        place = sim.ahead[k]
        round_queue[k] = queue[place]
        for i in range(first, place):
            round_queue[at] = queue[i]
            at += 1
        first = place + 1
    for i in range(first, pool.waiting):
        round_queue[at] = queue[i]
        at += 1
    order_lifted(sim, 0, pool.ahead)


@compiled
def order_lifted(sim: Sim, low: int, high: int) -> None:
    """Sort entitled jobs whose keys the lift rounded to the same score by seniority."""
    jobs, round_queue = sim.jobs, sim.round_queue
    for at in range(low + 1, high):
        j, left = round_queue[at], at
        while left > low:
            other = jobs[round_queue[left - 1]]
            if LIFT - other.key != LIFT - jobs[j].key or other.seniority < jobs[j].seniority:
                break
            round_queue[left] = round_queue[left - 1]
            left -= 1
        round_queue[left] = j


@compiled
def take_in(sim: Sim, at: int, has_reservation: bool, entitled: bool) -> int:
    """Add the jobs with that place to `round_queue` from `at` on, and return its length."""
    for i in range(sim.pool.waiting):
        job = sim.jobs[sim.queue[i]]
        if (job.reservation_round > 0) == has_reservation and job.entitled == entitled:
            sim.round_queue[at] = sim.queue[i]
            at += 1
    return at


@compiled
def expire_reservations(sim: Sim) -> None:
    """Drop reservations of earlier rounds: one lasts for the round after its evictions (rule
    10).
    """
    pool = sim.pool
    for i in range(pool.waiting):
        job = sim.jobs[sim.queue[i]]
        if 0 < job.reservation_round < pool.rounds:
            job.reservation_round = 0
            pool.reservations -= 1


@compiled
def remove_started(sim: Sim) -> None:
    """Remove the jobs that this round started from the queue."""
    remove_from(sim, 0 if sim.scan.has_reservations else sim.started_positions[0])


@compiled
def remove_from(sim: Sim, first: int) -> None:
    """Remove jobs that no longer wait from that index of the queue on."""
    pool, queue = sim.pool, sim.queue
    left = first
    for i in range(left, pool.waiting):
        if sim.jobs[queue[i]].state == WAITING:
            queue[left] = queue[i]
            left += 1
    pool.waiting = left
