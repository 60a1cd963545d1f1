"""Small jobs that migrate together, so that a larger one finds room (rule 13)."""

from __future__ import annotations

from simulator.kernel import attempts, board, progress
from simulator.kernel.allocations import lowest, shift_all
from simulator.kernel.codes import (
    DEFRAGMENTATION_TRIES_PER_ROUND,
    DEFRAGMENTATIONS_PER_ROUND,
    LEAST_SHARE,
    MAX_MIGRATIONS,
)
from simulator.kernel.compiled import compiled
from simulator.kernel.queue import remove_from
from simulator.kernel.shapes import mark_no_migrations
from simulator.kernel.state import JobRow, NodeRow, Sim
from simulator.kernel.victims import evict_for


@compiled
def defragment(sim: Sim, j: int, now: int) -> bool:
    """Migrate others for the job and return True; else mark its shape for this round."""
    scan, job = sim.scan, sim.jobs[j]
    shape = sim.shapes[job.kind]
    if job.reservation_round or j == scan.overdue or shape.no_migrations:
        return False
    if not may_defragment(sim, job):
        mark_no_migrations(scan, shape)
        return False
    scan.defragmentation_tries += 1
    fill_node_rows(sim, now)
    leaving_count = empty_nodes(sim, job)
    if leaving_count == 0:
        mark_no_migrations(scan, shape)
        return False
    reserve_targets(sim, leaving_count)
    evict_for(sim, leaving_count, job)
    sim.pool.migrating += leaving_count
    sim.pool.migrations += leaving_count
    scan.defragmentations += 1
    return True


@compiled
def may_defragment(sim: Sim, job: JobRow) -> bool:
    """Return whether the job would fit if all free GPUs were on one node, within the round's
    limits.
    """
    if (
        sim.scan.defragmentations == DEFRAGMENTATIONS_PER_ROUND
        or sim.scan.defragmentation_tries == DEFRAGMENTATION_TRIES_PER_ROUND
        or progress.is_paused(sim.rules, sim.pool)
    ):
        return False
    free = 0
    for f in range(1, sim.levels.shape[0]):
        free += f * sim.levels[f]
    return job.gpus > 0 and free >= job.gang


@compiled
def fill_node_rows(sim: Sim, now: int) -> None:
    """Fill `node_rows`: the movable jobs of each node, and the nodes with a job that has to
    stay.
    """
    for n in range(sim.free.shape[0]):
        row = sim.node_rows[n]
        row.gpus = 0
        row.count = 0
        row.first = -1
        row.fixed = False
        row.emptied = False
    for k in range(sim.pool.running):
        slot = sim.running[k]
        job = sim.jobs[slot.job]
        stays = slot.started_ms >= now or slot.migratable_ms > now
        stays = stays or job.workers != 1 or job.evicted == sim.pool.rounds
        stays = stays or (
            progress.stoppable_ms(sim.rules, job, slot, slot.migratable_ms, now) > now
        )
        at = job.first_allocation
        while at >= 0:
            allocation = sim.allocations[at]
            row = sim.node_rows[allocation.node]
            row.gpus += allocation.gpus
            row.fixed = row.fixed or stays
            if not stays:
                sim.neighbours[k] = row.first
                row.first = k
                row.count += 1
            at = allocation.next


@compiled
def empty_nodes(sim: Sim, job: JobRow) -> int:
    """Empty nodes until the job has room, the least used first; return how many jobs leave, 0 for
    no room.

    Fills `leaving` and the next of `targets`, frees the GPUs of the one and takes those of the
    other.
    """
    left = job.workers * job.gpus // LEAST_SHARE
    leaving_count = 0
    while True:
        node = next_node(sim, job)
        if node < 0 or sim.node_rows[node].gpus > left:
            break
        row = sim.node_rows[node]
        row.fixed = True
        if leaving_count + row.count <= MAX_MIGRATIONS and migrate_all(sim, node, leaving_count):
            left -= row.gpus
            leaving_count += row.count
            if board.has_room(sim.levels, job.workers, job.gpus):
                return leaving_count
    for k in range(leaving_count):
        shift_all(
            sim.free, sim.levels, sim.allocations, sim.jobs[sim.leaving[k]].first_allocation, -1
        )
    return_targets(sim, 0, leaving_count)
    return 0


@compiled
def next_node(sim: Sim, job: JobRow) -> int:
    """Return the least used half-free node that would have room for one more worker, or -1."""
    node = -1
    for n in range(sim.free.shape[0]):
        row, free = sim.node_rows[n], sim.free[n]
        if row.fixed or row.count == 0 or 2 * free < sim.sizes[n]:
            continue
        is_least = node < 0 or row.gpus < sim.node_rows[node].gpus
        if is_least and (free + row.gpus) // job.gpus > free // job.gpus:
            node = n
    return node


@compiled
def migrate_all(sim: Sim, node: int, leaving_count: int) -> bool:
    """Find a target for every job of the node, the largest first; else change nothing."""
    row = sim.node_rows[node]
    row.emptied = True
    list_node_jobs(sim, row, leaving_count)
    for k in range(leaving_count, leaving_count + row.count):
        if not take_target(sim, k):
            return_targets(sim, leaving_count, k)
            row.emptied = False
            return False
    for k in range(leaving_count, leaving_count + row.count):
        shift_all(
            sim.free, sim.levels, sim.allocations, sim.jobs[sim.leaving[k]].first_allocation, 1
        )
        sim.node_rows[sim.targets[sim.pool.migrating + k].node].fixed = True
    return True


@compiled
def list_node_jobs(sim: Sim, row: NodeRow, leaving_count: int) -> None:
    """Fill `leaving` from that index on: the largest first, then by job id."""
    at, count = row.first, 0
    while at >= 0:
        j = sim.running[at].job
        k = leaving_count + count
        while k > leaving_count and goes_before(sim.jobs[j], sim.jobs[sim.leaving[k - 1]]):
            sim.leaving[k] = sim.leaving[k - 1]
            k -= 1
        sim.leaving[k] = j
        count += 1
        at = sim.neighbours[at]


@compiled
def goes_before(job: JobRow, other: JobRow) -> bool:
    """Return whether the job is larger, or as large with a smaller id."""
    if job.gang != other.gang:
        larger: bool = job.gang > other.gang
        return larger
    earlier: bool = job.tie < other.tie
    return earlier


@compiled
def take_target(sim: Sim, k: int) -> bool:
    """Take the best fit for the k-th leaving job, off the nodes that are emptied (rule 4)."""
    job = sim.jobs[sim.leaving[k]]
    node = -1
    for n in range(sim.free.shape[0]):
        free = sim.free[n]
        is_best = node < 0 or free < sim.free[node]
        if is_best and free >= job.gpus and not sim.node_rows[n].emptied:
            node = n
    if node < 0:
        return False
    target = sim.targets[sim.pool.migrating + k]
    target.node = node
    target.gpus = job.gpus
    target.bits = lowest(sim.bits[node], job.gpus)
    target.next = sim.leaving[k]
    sim.bits[node] ^= target.bits
    board.shift(sim.free, sim.levels, node, -job.gpus)
    return True


@compiled
def return_targets(sim: Sim, low: int, high: int) -> None:
    """Return the GPUs taken for the leaving jobs from low to high."""
    for k in range(low, high):
        target = sim.targets[sim.pool.migrating + k]
        sim.bits[target.node] ^= target.bits
        board.shift(sim.free, sim.levels, target.node, target.gpus)


@compiled
def reserve_targets(sim: Sim, leaving_count: int) -> None:
    """Reserve the targets until the end of the round; jobs restart there in the next one."""
    scan = sim.scan
    for k in range(leaving_count):
        target = sim.targets[sim.pool.migrating + k]
        reserved = sim.reserved[scan.reserved]
        scan.reserved += 1
        reserved.node = target.node
        reserved.gpus = target.gpus
        reserved.bits = target.bits


@compiled
def start_migrated(sim: Sim, now: int) -> None:
    """Start the jobs that migrated in the last round on their targets, before the queue scan."""
    pool = sim.pool
    for k in range(pool.migrating):
        target = sim.targets[k]
        new = pool.spare_allocation
        allocation = sim.allocations[new]
        pool.spare_allocation = allocation.next
        allocation.node = target.node
        allocation.gpus = target.gpus
        allocation.bits = target.bits
        allocation.next = -1
        sim.jobs[target.next].first_allocation = new
        sim.bits[target.node] ^= target.bits
        board.shift(sim.free, sim.levels, target.node, -target.gpus)
        attempts.begin_attempt(sim, target.next, now)
    if pool.migrating:
        remove_from(sim, 0)
        pool.migrating = 0
    sim.scan.migrated = sim.scan.started
