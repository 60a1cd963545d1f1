"""A round: one queue scan that starts jobs and stops others (rules 2 to 10)."""

from __future__ import annotations

import math

from simulator.kernel import (
    attempts,
    board,
    defragment,
    easy,
    entitlement,
    long_waits,
    queue,
    victims,
)
from simulator.kernel.codes import EASY, NEVER, SETTLE_MS, STRICT, WAITING
from simulator.kernel.compiled import compiled
from simulator.kernel.shapes import is_passed_over, mark_no_room
from simulator.kernel.state import Ints, Sim


@compiled
def run_round(sim: Sim, now: int) -> None:
    """Run one round at this instant."""
    pool = sim.pool
    pool.first_change_ms = NEVER
    pool.round_at_ms = NEVER
    pool.again_at_ms = NEVER
    pool.rounds += 1
    reset_scan(sim)
    if sim.rules.tenant_floor > 0.0:
        entitlement.choose_entitled(sim)
    defragment.start_migrated(sim, now)
    if queue.is_aging(sim.rules):
        queue.rank_all(sim, pool.ranked_at_ms)
    if sim.scan.has_reservations:
        queue.order_round(sim)
    long_waits.lead(sim, now)
    scan_queue(sim, sim.round_queue if sim.scan.has_reservations else sim.queue, now)
    finish_round(sim, now)


@compiled
def reset_scan(sim: Sim) -> None:
    """Reset the counters and marks of the queue scan."""
    scan = sim.scan
    scan.open_shapes = sim.pool.waiting_shapes
    scan.started = 0
    scan.has_reservations = sim.pool.reservations > 0
    scan.reserved = 0
    scan.evictions = 0
    scan.searches = 0
    scan.defragmentations = 0
    scan.defragmentation_tries = 0
    scan.evicted = 0
    scan.victims = 0
    scan.protected = 0
    scan.bar = -math.inf
    scan.unfinished = False
    scan.head = False
    scan.noted_longest = False
    scan.shadow_ms = NEVER
    scan.overdue = -1
    scan.again_ms = NEVER
    if scan.unmarked:
        return
    scan.unmarked = True
    for s in range(len(sim.shapes)):
        sim.shapes[s].no_room = False
        sim.shapes[s].no_victims = not sim.rules.preempts_by_rank
        sim.shapes[s].no_migrations = sim.rules.defragment_after_ms == NEVER


@compiled
def scan_queue(sim: Sim, order: Ints, now: int) -> None:
    """Try each job in order, until none may start or the mode ends the scan."""
    scan = sim.scan
    for i in range(sim.pool.waiting):
        j = order[i]
        if j != scan.overdue and is_passed_over(sim.shapes[sim.kinds[j]]):
            if scan.open_shapes == 0 and not long_waits.is_ahead(sim, i):
                return
        else:
            started = scan.started
            goes_on = try_start(sim, j, now)
            if scan.started > started:
                sim.started_positions[started - scan.migrated] = i
            if not goes_on:
                return


@compiled
def try_start(sim: Sim, j: int, now: int) -> bool:
    """Start the job if it may start; return False to end the scan."""
    scan, job = sim.scan, sim.jobs[j]
    shape = sim.shapes[job.kind]
    if scan.head:
        if not easy.backfill(sim, j, now):
            mark_no_room(scan, shape)
        if j == scan.overdue and job.state == WAITING:
            long_waits.expect_lapse(sim, j, now)
            long_waits.reserve_roomiest(sim, j)
        return True
    if not shape.no_room and board.has_room(sim.levels, job.workers, job.gpus):
        count = board.place(sim.free, sim.levels, job.workers, job.gpus, sim.placed)
        attempts.start(sim, j, count, now)
        return True
    mark_no_room(scan, shape)
    if j == scan.overdue:
        long_waits.expect_lapse(sim, j, now)
    stops_others = not shape.no_victims and victims.find_victims(sim, j, now)
    stops_others = stops_others or defragment.defragment(sim, j, now)
    if j == scan.overdue and not stops_others:
        long_waits.reserve_roomiest(sim, j)
        stops_others = True
    if sim.rules.queue_mode == EASY:
        easy.set_head(sim, j, now, stops_others)
    return sim.rules.queue_mode != STRICT


@compiled
def finish_round(sim: Sim, now: int) -> None:
    """Free the round's reserved GPUs, stop the victims and enqueue them again."""
    pool, scan = sim.pool, sim.scan
    if scan.reserved:
        victims.release_reserved(sim)
    if scan.started > scan.migrated:
        queue.remove_started(sim)
    if pool.reservations:
        queue.expire_reservations(sim)
    long_waits.note_overdue(sim, now)
    for k in range(scan.evicted):
        attempts.stop(sim, sim.evicted[k], now)
        queue.enqueue(sim, sim.evicted[k], now)
    changed = scan.started > 0 or scan.evicted > 0 or scan.unfinished
    if pool.waiting and changed:
        if queue.mark_ranked(pool, sim.rules, now):
            queue.refresh_context(sim, now)
        if sim.rules.preempts_by_rank:
            pool.first_change_ms = now
            pool.round_at_ms = now + SETTLE_MS
    pool.again_at_ms = scan.again_ms
