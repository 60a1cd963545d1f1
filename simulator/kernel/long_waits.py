"""The overdue job: GPUs are reserved for it as they become free (rules 3 and 17)."""

from __future__ import annotations

from simulator.kernel import board
from simulator.kernel.allocations import lowest
from simulator.kernel.codes import NEVER, WAITING
from simulator.kernel.compiled import compiled
from simulator.kernel.queue import order_round
from simulator.kernel.state import JobRow, Sim
from simulator.kernel.victims import reserve


@compiled
def overdue_job(sim: Sim, now: int) -> int:
    """Return the job that waited longest, of those that waited too long; -1: none."""
    overdue, first_ms = -1, NEVER
    if now < sim.pool.unreserved_until_ms or has_lapsed(sim, now):
        return overdue
    latest_ms = now - sim.rules.reserve_after_ms
    if sim.pool.oldest_ms > latest_ms:
        return overdue
    sim.pool.oldest_ms = now
    for i in range(sim.pool.waiting):
        j = sim.queue[i]
        job = sim.jobs[j]
        since_ms = job.since_ms
        sim.pool.oldest_ms = min(sim.pool.oldest_ms, since_ms)
        if since_ms > latest_ms or now < job.unreserved_until_ms:
            continue
        if since_ms < first_ms or (since_ms == first_ms and job.tie < sim.jobs[overdue].tie):
            first_ms, overdue = since_ms, j
    return overdue


@compiled
def lapse_ms(sim: Sim, j: int, from_ms: int) -> int:
    """Return when a reservation lapses that began at `from_ms`."""
    return from_ms + max(from_ms - sim.jobs[j].since_ms, sim.rules.least_hold_ms)


@compiled
def has_lapsed(sim: Sim, now: int) -> bool:
    """Return whether the reservation for the noted job has lasted long enough in vain."""
    pool = sim.pool
    if pool.overdue < 0 or sim.jobs[pool.overdue].state != WAITING:
        return False
    return now >= lapse_ms(sim, pool.overdue, pool.overdue_from_ms)


@compiled
def expect_lapse(sim: Sim, j: int, now: int) -> None:
    """Request a round for when the reservation for the overdue job lapses."""
    if sim.rules.guards:
        from_ms = sim.pool.overdue_from_ms if sim.pool.overdue == j else now
        sim.scan.again_ms = min(sim.scan.again_ms, lapse_ms(sim, j, from_ms))


@compiled
def lead(sim: Sim, now: int) -> None:
    """Put that job before all others of `round_queue` but those with a reservation."""
    if sim.rules.reserve_after_ms == NEVER:
        return
    scan, round_queue = sim.scan, sim.round_queue
    scan.overdue = overdue_job(sim, now)
    if scan.overdue < 0:
        return
    if not scan.has_reservations:
        order_round(sim)
    target = 0 if sim.jobs[scan.overdue].reservation_round else sim.pool.reservations
    at = target
    while round_queue[at] != scan.overdue:
        at += 1
    for i in range(at, target, -1):
        round_queue[i] = round_queue[i - 1]
    round_queue[target] = scan.overdue
    scan.overdue_index = target
    scan.has_reservations = True


@compiled
def is_ahead(sim: Sim, i: int) -> bool:
    """Return whether the scan, at that index, has not come to the job yet."""
    return sim.scan.overdue >= 0 and i < sim.scan.overdue_index


@compiled
def note_overdue(sim: Sim, now: int) -> None:
    """Note for which job GPUs are reserved, and since when; none are for a while after a lapse."""
    pool = sim.pool
    if not sim.rules.guards:
        return
    if has_lapsed(sim, now):
        held_ms = now - pool.overdue_from_ms
        sim.jobs[pool.overdue].unreserved_until_ms = now + 2 * held_ms
        pool.unreserved_until_ms = now + held_ms
        pool.lapsed_from_ms = pool.overdue_from_ms
        pool.overdue = -1
        return
    overdue = overdue_job(sim, now) if sim.scan.overdue >= 0 else -1
    if overdue != pool.overdue:
        pool.overdue = overdue
        pool.overdue_from_ms = now


@compiled
def reserve_roomiest(sim: Sim, j: int) -> None:
    """Reserve the roomiest nodes until the gang has enough of them; first those on which no job
    started since GPUs are reserved for it, and none outlasted a reservation.
    """
    job = sim.jobs[j]
    count_holders(sim, j)
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
def count_holders(sim: Sim, j: int) -> None:
    """Count the GPUs of each node that hold jobs started since then, and jobs that outlasted the
    last reservation that lapsed.
    """
    pool = sim.pool
    for n in range(len(sim.sizes)):
        sim.node_rows[n].late = 0
        sim.node_rows[n].outlasting = 0
    for k in range(pool.running):
        slot = sim.running[k]
        is_late = pool.overdue == j and slot.started_ms > pool.overdue_from_ms
        is_outlasting = slot.started_ms <= pool.lapsed_from_ms
        if not (is_late or is_outlasting):
            continue
        at = sim.jobs[slot.job].first_allocation
        while at >= 0:
            row = sim.node_rows[sim.allocations[at].node]
            row.late += sim.allocations[at].gpus if is_late else 0
            row.outlasting += sim.allocations[at].gpus if is_outlasting else 0
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
    """Return whether node `a` is reserved before node `b`: fewest workers of the gang for which
    late jobs leave no room, then outlasting ones, then most free GPUs, then by number.
    """
    late_a = missing(job, sim.sizes[a], sim.node_rows[a].late)
    late_b = missing(job, sim.sizes[b], sim.node_rows[b].late)
    if late_a != late_b:
        return late_a < late_b
    old_a = missing(job, sim.sizes[a], sim.node_rows[a].outlasting)
    old_b = missing(job, sim.sizes[b], sim.node_rows[b].outlasting)
    if old_a != old_b:
        return old_a < old_b
    if sim.free[a] != sim.free[b]:
        return bool(sim.free[a] > sim.free[b])
    return a < b


@compiled
def missing(job: JobRow, size: int, held: int) -> int:
    """Return how many workers that such a node would get have no room beside `held` GPUs."""
    needed: int = min(job.workers, size // job.gpus)
    room: int = (size - held) // job.gpus
    return max(0, needed - room)
