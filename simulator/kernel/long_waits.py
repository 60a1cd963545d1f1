"""The job that waited too long: GPUs are reserved for it as they become free (rules 3 and 17)."""

from __future__ import annotations

from simulator.kernel import board
from simulator.kernel.allocations import lowest
from simulator.kernel.codes import NEVER
from simulator.kernel.compiled import compiled
from simulator.kernel.state import JobRow, Sim
from simulator.kernel.victims import reserve


@compiled
def oldest_overdue(sim: Sim, now: int) -> int:
    """Return the job that waited longest, of those that waited too long; -1: none."""
    oldest = -1
    since_ms = now - sim.rules.reserve_after_ms
    for i in range(sim.pool.waiting):
        j = sim.queue[i]
        job = sim.jobs[j]
        if job.since_ms > since_ms:
            continue
        if oldest < 0 or job.since_ms < since_ms or job.tie < sim.jobs[oldest].tie:
            since_ms, oldest = job.since_ms, j
    return oldest


@compiled
def lead(sim: Sim, now: int) -> None:
    """Put that job before all others of `round_queue` but those with a reservation."""
    if sim.rules.reserve_after_ms == NEVER:
        return
    scan, round_queue = sim.scan, sim.round_queue
    scan.oldest = oldest_overdue(sim, now)
    if scan.oldest < 0:
        return
    target = 0 if sim.jobs[scan.oldest].reservation_round else sim.pool.reservations
    at = target
    while round_queue[at] != scan.oldest:
        at += 1
    for i in range(at, target, -1):
        round_queue[i] = round_queue[i - 1]
    round_queue[target] = scan.oldest
    scan.oldest_at = target
    scan.has_reservations = True


@compiled
def is_ahead(sim: Sim, i: int) -> bool:
    """Return whether the scan, at that index, has not come to the job yet."""
    return sim.scan.oldest >= 0 and i < sim.scan.oldest_at


@compiled
def note_oldest(sim: Sim, now: int) -> None:
    """Note for which job GPUs are reserved, and since when."""
    if sim.scan.oldest < 0:
        sim.pool.oldest = -1
        return
    oldest = oldest_overdue(sim, now)
    if oldest != sim.pool.oldest:
        sim.pool.oldest = oldest
        sim.pool.oldest_from_ms = now


@compiled
def reserve_roomiest(sim: Sim, j: int) -> None:
    """Reserve the roomiest nodes until the gang has enough of them; first those on which no job
    started since GPUs are reserved for it.
    """
    job = sim.jobs[j]
    count_late(sim, j)
    left, count, last = job.workers, 0, -1
    while left > 0:
        last = next_node(sim, job, last)
        workers = min(left, sim.sizes[last] // job.gpus)
        if workers:
            gpus = min(sim.free[last], workers * job.gpus)
            sim.placed[count].node = last
            sim.placed[count].bits = lowest(sim.bits[last], gpus)
            count += 1
            left -= workers
    for k in range(count):
        node, free = sim.placed[k].node, sim.free[sim.placed[k].node]
        reserve(sim, node, sim.placed[k].bits)
        if sim.scan.head and sim.off_free[node] >= 0:
            board.shift(sim.off_free, sim.off_levels, node, sim.free[node] - free)


@compiled
def count_late(sim: Sim, j: int) -> None:
    """Count the GPUs of each node, as `node_rows.gpus`, that hold jobs started since then."""
    for n in range(len(sim.sizes)):
        sim.node_rows[n].gpus = 0
    if not sim.rules.guards or sim.pool.oldest != j:
        return
    for k in range(sim.pool.running):
        slot = sim.running[k]
        if slot.started_ms > sim.pool.oldest_from_ms:
            at = sim.jobs[slot.job].first_allocation
            while at >= 0:
                sim.node_rows[sim.allocations[at].node].gpus += sim.allocations[at].gpus
                at = sim.allocations[at].next


@compiled
def next_node(sim: Sim, job: JobRow, last: int) -> int:
    """Return the node that follows `last` (-1: the first) in the order of reservations."""
    best = -1
    for n in range(len(sim.sizes)):
        if last >= 0 and not goes_before(sim, job, last, n):
            continue
        if best < 0 or goes_before(sim, job, n, best):
            best = n
    return best


@compiled
def goes_before(sim: Sim, job: JobRow, a: int, b: int) -> bool:
    """Return whether node `a` is reserved before node `b`: fewest late GPUs where the gang's
    would be, then most free ones, then by number.
    """
    late_a, late_b = late_of(sim, job, a), late_of(sim, job, b)
    if late_a != late_b:
        return late_a < late_b
    if sim.free[a] != sim.free[b]:
        return bool(sim.free[a] > sim.free[b])
    return a < b


@compiled
def late_of(sim: Sim, job: JobRow, n: int) -> int:
    """Return how many GPUs that the gang would use on the node hold jobs started since then."""
    wanted: int = min(job.workers, sim.sizes[n] // job.gpus) * job.gpus
    not_late: int = sim.sizes[n] - sim.node_rows[n].gpus
    return max(0, wanted - not_late)
