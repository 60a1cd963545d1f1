"""Victims: who yields to a job that does not fit (rules 6 to 8, within one tier)."""

from __future__ import annotations

import math

from simulator.kernel import board, ranking
from simulator.kernel.allocations import lowest, shift_all
from simulator.kernel.codes import EVICTIONS_PER_ROUND, LARGE_MOST, SEARCHES_PER_ROUND
from simulator.kernel.compiled import compiled
from simulator.kernel.shapes import close, give_up
from simulator.kernel.sorting import sort
from simulator.kernel.state import Job, Rules, Sim, Victim


@compiled
def search(sim: Sim, j: int, now: int) -> bool:
    """Does the job make others stop? If not, it and those that need as much need not look."""
    walk, job = sim.walk, sim.jobs[j]
    score = -job.key
    if score > walk.bar:
        walk.bar = score
        list_victims(sim, score, now)
    if walk.victims == 0 or not leads(sim.victims[0], sim.rules, score):
        despair(sim, job, score)
        return False
    if walk.evictions == EVICTIONS_PER_ROUND or walk.searches == SEARCHES_PER_ROUND:
        walk.unfinished = walk.unfinished or walk.evictions == EVICTIONS_PER_ROUND
        if not job.claim:
            close(walk, sim.shapes[job.kind])
        return False
    walk.searches += 1
    given = give_victims(sim, job, score)
    if given and board.room(sim.levels, job.workers, job.gpus):
        needed = spare(sim, job, given)
        evict(sim, given - needed, given, job)
        walk.evictions += 1
        return True
    for k in range(given):
        shift_victim(sim, sim.chosen[k], -1)
    despair(sim, job, score)
    return False


@compiled
def despair(sim: Sim, job: Job, score: float) -> None:
    """Nobody yields. A job that claims is out of turn: that says nothing of those after it."""
    wait_for_protected(sim, score)
    if not job.claim:
        give_up(sim, job.kind)


@compiled
def largest_victim(sim: Sim) -> float:
    """GPUs; rule 12: no larger gang is stopped by rank where many recent ones are large."""
    rules = sim.rules
    if rules.large_share >= 1.0 or sim.pool.large < LARGE_MOST:
        return math.inf
    return rules.large_share * rules.capacity


@compiled
def list_victims(sim: Sim, score: float, now: int) -> None:
    """Fills `victims` and `protected` with the running jobs that a job of that score leads.

    Whoever comes later in the line has a lower score, but for those that were out of turn.
    """
    walk, rows, ranked_at = sim.walk, sim.sorting, sim.pool.ranked_at_ms
    margin = sim.rules.margin
    largest = largest_victim(sim)
    walk.protected = 0
    count = 0
    for k in range(sim.pool.running):
        slot = sim.running[k]
        if slot.started_ms >= now:
            continue
        if ranked_at >= slot.until_ms:
            ranking.rank_running(sim, k)
        other = -slot.key
        if not other + margin < score or sim.jobs[slot.job].gang > largest:
            continue
        if slot.safe_ms > now:
            sim.protected[walk.protected].score = other
            sim.protected[walk.protected].until_ms = slot.safe_ms
            walk.protected += 1
            continue
        rows[count].value = other
        rows[count].tie = sim.jobs[slot.job].tie
        sim.chosen[count] = slot.job
        count += 1
    sort(rows, count)
    for k in range(count):
        victim = sim.victims[k]
        victim.job = sim.chosen[rows[k].order]
        victim.score = rows[rows[k].order].value
    walk.victims = count


@compiled
def shift_victim(sim: Sim, at: int, sign: int) -> None:
    """Give back (1) or take again (-1) the GPUs of that victim."""
    shift_all(sim.free, sim.levels, sim.spans, sim.jobs[sim.victims[at].job].span, sign)


@compiled
def give_victims(sim: Sim, job: Job, score: float) -> int:
    """Gives back 1, 3, 7, 15, ... victims until the job fits or none is left: `chosen`."""
    given, batch, at = 0, 1, 0
    while True:
        while given < batch and at < sim.walk.victims and leads(sim.victims[at], sim.rules, score):
            if sim.jobs[sim.victims[at].job].evicted != sim.pool.rounds:
                shift_victim(sim, at, 1)
                sim.chosen[given] = at
                given += 1
            at += 1
        if given < batch or board.room(sim.levels, job.workers, job.gpus):
            return given
        batch = 2 * given + 1


@compiled
def leads(victim: Victim, rules: Rules, score: float) -> bool:
    return victim.score + rules.margin < score


@compiled
def spare(sim: Sim, job: Job, given: int) -> int:
    """Takes victims back from the dearest on; the needed ones are now the last of `chosen`."""
    needed = 0
    for k in range(given - 1, -1, -1):
        at = sim.chosen[k]
        shift_victim(sim, at, -1)
        if not board.room(sim.levels, job.workers, job.gpus):
            shift_victim(sim, at, 1)
            needed += 1
            sim.chosen[given - needed] = at
    return needed


@compiled
def evict(sim: Sim, low: int, high: int, job: Job) -> None:
    """Those chosen from low to high will stop."""
    for k in range(low, high):
        sim.leaving[k - low] = sim.victims[sim.chosen[k]].job
    make_way(sim, high - low, job)


@compiled
def make_way(sim: Sim, leave: int, job: Job) -> None:
    """So many that are leaving, whose GPUs are given back, will stop; what is free of the job's
    GPUs is kept for it."""
    walk = sim.walk
    count = board.place(sim.free, sim.levels, job.workers, job.gpus, sim.placed)
    board.give_back(sim.free, sim.levels, sim.placed, count)
    for k in range(leave):
        flip(sim, sim.leaving[k])
    for k in range(count):
        sim.placed[k].bits = lowest(sim.bits[sim.placed[k].node], sim.placed[k].gpus)
    for k in range(leave):
        other = sim.leaving[k]
        flip(sim, other)
        shift_all(sim.free, sim.levels, sim.spans, sim.jobs[other].span, -1)
        sim.jobs[other].evicted = sim.pool.rounds
        sim.evicted[walk.evicted] = other
        walk.evicted += 1
    for k in range(count):
        keep(sim, sim.placed[k].node, sim.placed[k].bits)
    sim.pool.claims += 0 if job.claim else 1
    job.claim = sim.pool.rounds


@compiled
def flip(sim: Sim, j: int) -> None:
    """The bits of a running job's GPUs: in use if they were free, else free."""
    at = sim.jobs[j].span
    while at >= 0:
        span = sim.spans[at]
        sim.bits[span.node] ^= span.bits
        at = span.next


@compiled
def keep(sim: Sim, node: int, wanted: int) -> None:
    """Of the wanted GPUs of a node those that are free, until the end of the round."""
    walk = sim.walk
    bits = sim.bits[node] & wanted
    if bits:
        kept = sim.kept[walk.kept]
        walk.kept += 1
        kept.node = node
        kept.bits = bits
        kept.gpus = 0
        while bits:
            bits &= bits - 1
            kept.gpus += 1
        sim.bits[node] ^= kept.bits
        board.shift(sim.free, sim.levels, node, -kept.gpus)


@compiled
def give_back(sim: Sim) -> None:
    """What was kept in this round is free again."""
    board.give_back(sim.free, sim.levels, sim.kept, sim.walk.kept)
    for k in range(sim.walk.kept):
        sim.bits[sim.kept[k].node] |= sim.kept[k].bits


@compiled
def wait_for_protected(sim: Sim, score: float) -> None:
    """A round is due again when the first whom the job leads is protected no longer."""
    walk = sim.walk
    for k in range(walk.protected):
        protected = sim.protected[k]
        if protected.score + sim.rules.margin < score:
            walk.residency_ms = min(walk.residency_ms, protected.until_ms)
