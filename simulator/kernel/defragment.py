"""Small jobs that move together, so that a larger one finds room (rule 13)."""

from __future__ import annotations

from simulator.kernel import attempts, board
from simulator.kernel.allocations import lowest, shift_all
from simulator.kernel.codes import (
    GATHER_TRIES_PER_ROUND,
    GATHERS_PER_ROUND,
    LEAST_SHARE,
    MOVERS_MOST,
)
from simulator.kernel.compiled import compiled
from simulator.kernel.queue import take_out
from simulator.kernel.shapes import scatter
from simulator.kernel.state import Home, Job, Sim
from simulator.kernel.victims import make_way


@compiled
def gather(sim: Sim, j: int, now: int) -> bool:
    """Do others move for the job? If not, nobody of its shape need ask again in this round."""
    walk, job = sim.walk, sim.jobs[j]
    shape = sim.shapes[job.kind]
    if job.claim or shape.scattered:
        return False
    if not may_gather(sim, job):
        scatter(walk, shape)
        return False
    walk.gather_tries += 1
    list_homes(sim, now)
    leave = empty(sim, job)
    if leave == 0:
        scatter(walk, shape)
        return False
    keep_targets(sim, leave)
    make_way(sim, leave, job)
    sim.pool.landing += leave
    sim.pool.moves += leave
    walk.gathers += 1
    return True


@compiled
def may_gather(sim: Sim, job: Job) -> bool:
    """Would there be room if the free GPUs lay side by side?"""
    if sim.walk.gathers == GATHERS_PER_ROUND or sim.walk.gather_tries == GATHER_TRIES_PER_ROUND:
        return False
    free = 0
    for f in range(1, sim.levels.shape[0]):
        free += f * sim.levels[f]
    return job.gpus > 0 and free >= job.gang


@compiled
def list_homes(sim: Sim, now: int) -> None:
    """Fills `homes`: who runs where, and where somebody has to stay."""
    for n in range(sim.free.shape[0]):
        home = sim.homes[n]
        home.gpus = 0
        home.count = 0
        home.first = -1
        home.fixed = False
        home.emptied = False
    for k in range(sim.pool.running):
        slot = sim.running[k]
        job = sim.jobs[slot.job]
        stays = slot.moves_ms > now or slot.started_ms >= now or job.workers != 1
        stays = stays or job.evicted == sim.pool.rounds
        at = job.span
        while at >= 0:
            span = sim.spans[at]
            home = sim.homes[span.node]
            home.gpus += span.gpus
            home.fixed = home.fixed or stays
            if not stays:
                sim.neighbours[k] = home.first
                home.first = k
                home.count += 1
            at = span.next


@compiled
def empty(sim: Sim, job: Job) -> int:
    """Empties nodes until the job has room, the least in use first: fills `leaving` and the next
    of `landings`, gives back the GPUs of the one and takes those of the others. 0: no room."""
    left = job.workers * job.gpus // LEAST_SHARE
    leave = 0
    while True:
        node = next_home(sim, job)
        if node < 0 or sim.homes[node].gpus > left:
            break
        home = sim.homes[node]
        home.fixed = True
        if leave + home.count <= MOVERS_MOST and move_all(sim, node, leave):
            left -= home.gpus
            leave += home.count
            if board.room(sim.levels, job.workers, job.gpus):
                return leave
    for k in range(leave):
        shift_all(sim.free, sim.levels, sim.spans, sim.jobs[sim.leaving[k]].span, -1)
    untake(sim, 0, leave)
    return 0


@compiled
def next_home(sim: Sim, job: Job) -> int:
    """The half free node with the least in use that would have room for one more worker."""
    found = -1
    for n in range(sim.free.shape[0]):
        home, free = sim.homes[n], sim.free[n]
        if home.fixed or home.count == 0 or 2 * free < sim.sizes[n]:
            continue
        is_least = found < 0 or home.gpus < sim.homes[found].gpus
        if is_least and (free + home.gpus) // job.gpus > free // job.gpus:
            found = n
    return found


@compiled
def move_all(sim: Sim, node: int, leave: int) -> bool:
    """A place elsewhere for everybody on the node, the largest first; else nothing is changed."""
    home = sim.homes[node]
    home.emptied = True
    list_movers(sim, home, leave)
    for k in range(leave, leave + home.count):
        if not take_elsewhere(sim, k):
            untake(sim, leave, k)
            home.emptied = False
            return False
    for k in range(leave, leave + home.count):
        shift_all(sim.free, sim.levels, sim.spans, sim.jobs[sim.leaving[k]].span, 1)
        sim.homes[sim.landings[sim.pool.landing + k].node].fixed = True
    return True


@compiled
def list_movers(sim: Sim, home: Home, leave: int) -> None:
    """Fills `leaving` from there on: the largest first, then by job id."""
    at, count = home.first, 0
    while at >= 0:
        j = sim.running[at].job
        k = leave + count
        while k > leave and goes_before(sim.jobs[j], sim.jobs[sim.leaving[k - 1]]):
            sim.leaving[k] = sim.leaving[k - 1]
            k -= 1
        sim.leaving[k] = j
        count += 1
        at = sim.neighbours[at]


@compiled
def goes_before(job: Job, other: Job) -> bool:
    if job.gang != other.gang:
        larger: bool = job.gang > other.gang
        return larger
    earlier: bool = job.tie < other.tie
    return earlier


@compiled
def take_elsewhere(sim: Sim, k: int) -> bool:
    """The best fit for the k-th that leaves, off the nodes that are emptied (rule 4)."""
    job = sim.jobs[sim.leaving[k]]
    target = -1
    for n in range(sim.free.shape[0]):
        free = sim.free[n]
        is_best = target < 0 or free < sim.free[target]
        if is_best and free >= job.gpus and not sim.homes[n].emptied:
            target = n
    if target < 0:
        return False
    landing = sim.landings[sim.pool.landing + k]
    landing.node = target
    landing.gpus = job.gpus
    landing.bits = lowest(sim.bits[target], job.gpus)
    landing.next = sim.leaving[k]
    sim.bits[target] ^= landing.bits
    board.shift(sim.free, sim.levels, target, -job.gpus)
    return True


@compiled
def untake(sim: Sim, low: int, high: int) -> None:
    """What those from low to high were to get."""
    for k in range(low, high):
        landing = sim.landings[sim.pool.landing + k]
        sim.bits[landing.node] ^= landing.bits
        board.shift(sim.free, sim.levels, landing.node, landing.gpus)


@compiled
def keep_targets(sim: Sim, leave: int) -> None:
    """Until the end of the round; nothing starts before the next."""
    walk = sim.walk
    for k in range(leave):
        landing = sim.landings[sim.pool.landing + k]
        kept = sim.kept[walk.kept]
        walk.kept += 1
        kept.node = landing.node
        kept.gpus = landing.gpus
        kept.bits = landing.bits


@compiled
def land(sim: Sim, now: int) -> None:
    """Who moved in the last round goes on where that was kept for it, before the line is asked."""
    pool = sim.pool
    for k in range(pool.landing):
        landing = sim.landings[k]
        new = pool.spare_span
        span = sim.spans[new]
        pool.spare_span = span.next
        span.node = landing.node
        span.gpus = landing.gpus
        span.bits = landing.bits
        span.next = -1
        sim.jobs[landing.next].span = new
        sim.bits[landing.node] ^= landing.bits
        board.shift(sim.free, sim.levels, landing.node, -landing.gpus)
        attempts.go(sim, landing.next, now)
    if pool.landing:
        take_out(sim, 0)
        pool.landing = 0
    sim.walk.landed = sim.walk.started
