"""Victims of a job that does not fit (rules 6 to 8, within one tier)."""

from __future__ import annotations

import math

from simulator.kernel import board, entitlement, forecast, progress, ranking
from simulator.kernel.allocations import lowest, shift_all
from simulator.kernel.codes import EVICTIONS_PER_ROUND, LARGE_THRESHOLD, NEVER, SEARCHES_PER_ROUND
from simulator.kernel.compiled import compiled
from simulator.kernel.shapes import mark_costlier, mark_no_victims
from simulator.kernel.sorting import sort
from simulator.kernel.state import JobRow, PackedRules, Sim, VictimRow


@compiled
def find_victims(sim: Sim, j: int, now: int) -> bool:
    """Stop others for the job and return True; else mark its shape and those that need as much."""
    scan, job = sim.scan, sim.jobs[j]
    score = entitlement.score_of(job, job.key)
    if score > scan.bar:
        scan.bar = score
        list_victims(sim, score, now)
    if scan.victims == 0 or not leads(sim.victims[0], sim.rules, score):
        record_failure(sim, j, score)
        return False
    if scan.evictions == EVICTIONS_PER_ROUND or scan.searches == SEARCHES_PER_ROUND:
        scan.unfinished = scan.unfinished or scan.evictions == EVICTIONS_PER_ROUND
        if j != scan.overdue and not job.reservation_round:
            mark_no_victims(scan, sim.shapes[job.kind])
        return False
    scan.searches += 1
    chosen_count = release_victims(sim, job, score)
    if chosen_count and board.has_room(sim.levels, job.workers, job.gpus):
        needed = drop_unneeded(sim, job, chosen_count)
        evict(sim, chosen_count - needed, chosen_count, job)
        scan.evictions += 1
        return True
    for k in range(chosen_count):
        shift_victim(sim, sim.chosen[k], -1)
    record_failure(sim, j, score)
    return False


@compiled
def record_failure(sim: Sim, j: int, score: float) -> None:
    """Record that no victims help the job.

    A job with a reservation, or that waited too long, is out of turn: its failure does not apply to
    those after it.
    """
    job = sim.jobs[j]
    wait_for_protected(sim, score)
    if j != sim.scan.overdue and not job.reservation_round:
        mark_costlier(sim, job.kind)


@compiled
def largest_victim(sim: Sim) -> float:
    """Return the GPUs above which rank stops no gang, where many recent ones are large (rule
    12).
    """
    rules = sim.rules
    if rules.large_gang_share >= 1.0 or sim.pool.large < LARGE_THRESHOLD:
        return math.inf
    return rules.large_gang_share * rules.capacity


@compiled
def list_victims(sim: Sim, score: float, now: int) -> None:
    """Fill `victims` and `protected` with the running jobs that a job of that score leads.

    Later jobs of the queue have lower scores, except those that were out of turn.
    """
    scan, rows = sim.scan, sim.sorting
    margin = sim.rules.preempt_margin
    largest = largest_victim(sim)
    price = progress.price_now(sim.rules, sim.pool)
    scan.protected = 0
    scan.victims = 0
    if progress.is_paused(sim.rules, sim.pool):
        return
    count = 0
    for k in range(sim.pool.running):
        slot = sim.running[k]
        if slot.started_ms >= now or slot.safe_ms >= NEVER:
            continue
        other = score_running(sim, k)
        if not other + margin < score:
            continue
        job = sim.jobs[slot.job]
        if job.gang > largest:
            continue
        stoppable_ms = progress.stoppable_ms(sim.rules, job, slot, slot.safe_ms, now)
        if price > 0.0:
            lost_ms = progress.lost_ms(sim.rules, job, now) if stoppable_ms <= now else 0
            other += price_of_stop(sim, k, price, lost_ms)
            if not other + margin < score:
                continue
        if stoppable_ms > now:
            sim.protected[scan.protected].score = other
            sim.protected[scan.protected].until_ms = stoppable_ms
            scan.protected += 1
            continue
        rows[count].value = other
        rows[count].tie = job.tie
        sim.chosen[count] = slot.job
        count += 1
    sort(rows, count)
    for k in range(count):
        victim = sim.victims[k]
        victim.job = sim.chosen[rows[k].order]
        victim.score = rows[rows[k].order].value
    scan.victims = count


@compiled
def score_running(sim: Sim, k: int) -> float:
    """Return the score of a running job as of the last ranking."""
    slot = sim.running[k]
    if sim.pool.ranked_at_ms >= slot.until_ms:
        ranking.rank_running(sim, k)
    if sim.rules.tenant_floor > 0.0:
        return entitlement.score_of(sim.jobs[slot.job], slot.key)
    return -slot.key


@compiled
def price_of_stop(sim: Sim, k: int, price: float, lost_ms: int) -> float:
    """Return what a stop that loses so much work adds to the score of a running job."""
    j = sim.running[k].job
    attained_s = progress.attained_ms(sim.jobs[j], sim.pool.ranked_at_ms) / 1000.0
    left_s = forecast.forecast_of(sim, j, attained_s).gittins_s
    return progress.price_of((lost_ms + sim.jobs[j].restart_ms) / 1000.0, left_s, price)


@compiled
def shift_victim(sim: Sim, at: int, sign: int) -> None:
    """Return (1) or take again (-1) the GPUs of that victim."""
    shift_all(
        sim.free, sim.levels, sim.allocations, sim.jobs[sim.victims[at].job].first_allocation, sign
    )


@compiled
def release_victims(sim: Sim, job: JobRow, score: float) -> int:
    """Free 1, 3, 7, 15, ... victims into `chosen` until the job fits or none is left."""
    chosen_count, batch, at = 0, 1, 0
    while True:
        while (
            chosen_count < batch
            and at < sim.scan.victims
            and leads(sim.victims[at], sim.rules, score)
        ):
            if sim.jobs[sim.victims[at].job].evicted != sim.pool.rounds:
                shift_victim(sim, at, 1)
                sim.chosen[chosen_count] = at
                chosen_count += 1
            at += 1
        if chosen_count < batch or board.has_room(sim.levels, job.workers, job.gpus):
            return chosen_count
        batch = 2 * chosen_count + 1


@compiled
def leads(victim: VictimRow, rules: PackedRules, score: float) -> bool:
    """Return whether the score exceeds the victim's by more than the margin."""
    return victim.score + rules.preempt_margin < score


@compiled
def drop_unneeded(sim: Sim, job: JobRow, chosen_count: int) -> int:
    """Take victims back, the highest first; the needed ones end as the last of `chosen`."""
    needed = 0
    for k in range(chosen_count - 1, -1, -1):
        at = sim.chosen[k]
        shift_victim(sim, at, -1)
        if not board.has_room(sim.levels, job.workers, job.gpus):
            shift_victim(sim, at, 1)
            needed += 1
            sim.chosen[chosen_count - needed] = at
    return needed


@compiled
def evict(sim: Sim, low: int, high: int, job: JobRow) -> None:
    """Evict the chosen victims from low to high."""
    for k in range(low, high):
        sim.leaving[k - low] = sim.victims[sim.chosen[k]].job
    evict_for(sim, high - low, job)


@compiled
def evict_for(sim: Sim, leave: int, job: JobRow) -> None:
    """Evict that many of `leaving`, whose GPUs are free here, and reserve the job's GPUs.

    Only the GPUs that are free without the victims are taken now: the others become free when they
    stop.
    """
    scan = sim.scan
    count = board.place(sim.free, sim.levels, job.workers, job.gpus, sim.placed)
    board.give_back(sim.free, sim.levels, sim.placed, count)
    for k in range(leave):
        toggle_bits(sim, sim.leaving[k])
    for k in range(count):
        sim.placed[k].bits = lowest(sim.bits[sim.placed[k].node], sim.placed[k].gpus)
    for k in range(leave):
        other = sim.leaving[k]
        toggle_bits(sim, other)
        shift_all(sim.free, sim.levels, sim.allocations, sim.jobs[other].first_allocation, -1)
        sim.jobs[other].evicted = sim.pool.rounds
        sim.evicted[scan.evicted] = other
        scan.evicted += 1
    for k in range(count):
        reserve(sim, sim.placed[k].node, sim.placed[k].bits)
    sim.pool.reservations += 0 if job.reservation_round else 1
    job.reservation_round = sim.pool.rounds


@compiled
def toggle_bits(sim: Sim, j: int) -> None:
    """Toggle the bits of a running job's GPUs between free and in use."""
    at = sim.jobs[j].first_allocation
    while at >= 0:
        allocation = sim.allocations[at]
        sim.bits[allocation.node] ^= allocation.bits
        at = allocation.next


@compiled
def reserve(sim: Sim, node: int, requested: int) -> None:
    """Reserve the free ones of the requested GPUs of a node until the end of the round."""
    scan = sim.scan
    bits = sim.bits[node] & requested
    if bits:
        reserved = sim.reserved[scan.reserved]
        scan.reserved += 1
        reserved.node = node
        reserved.bits = bits
        reserved.gpus = 0
        while bits:
            bits &= bits - 1
            reserved.gpus += 1
        sim.bits[node] ^= reserved.bits
        board.shift(sim.free, sim.levels, node, -reserved.gpus)


@compiled
def release_reserved(sim: Sim) -> None:
    """Free all GPUs that this round reserved."""
    board.give_back(sim.free, sim.levels, sim.reserved, sim.scan.reserved)
    for k in range(sim.scan.reserved):
        sim.bits[sim.reserved[k].node] |= sim.reserved[k].bits


@compiled
def wait_for_protected(sim: Sim, score: float) -> None:
    """Request a round for when the first protected job that this one leads may be stopped."""
    scan = sim.scan
    for k in range(scan.protected):
        protected = sim.protected[k]
        if protected.score + sim.rules.preempt_margin < score:
            scan.again_ms = min(scan.again_ms, protected.until_ms)
