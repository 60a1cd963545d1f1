"""Victims: who yields to a job that does not fit (rules 6 to 8, within one tier)."""

from __future__ import annotations

from simulator.kernel import board, ranking
from simulator.kernel.compiled import compiled
from simulator.kernel.shapes import give_up
from simulator.kernel.sorting import sort
from simulator.kernel.spans import shift_all
from simulator.kernel.state import Job, Sim


@compiled
def search(sim: Sim, j: int, now: int) -> None:
    """Finds victims for the job, or says that it and those who need as much need not look."""
    walk, job = sim.walk, sim.jobs[j]
    score = ranking.score_of(sim.rules, job.key)
    if not walk.listed:
        walk.listed = True
        list_victims(sim, score, now)
    walk.searches += 1
    given = give_victims(sim, job, score)
    if given and board.room(sim.levels, job.workers, job.gpus):
        needed = spare(sim, job, given)
        evict(sim, given - needed, given, job)
        walk.evictions += 1
        job.claims = True
        sim.pool.claims += 1
        return
    for k in range(given):
        shift_victim(sim, sim.chosen[k], -1)
    wait_for_protected(sim, score)
    give_up(sim, job.kind)


@compiled
def list_victims(sim: Sim, score: float, now: int) -> None:
    """Fills `victims` and `protected` with the running jobs that a job of that score leads.

    Whoever comes later in the line has a lower score: who leads nobody now is left out for all.
    """
    walk, margin, rows = sim.walk, sim.rules.margin, sim.sorting
    count = 0
    for k in range(sim.pool.running):
        r = sim.running[k]
        job = sim.jobs[r]
        if job.started_ms >= now:
            continue
        other = ranking.score_of(sim.rules, ranking.running_key(sim, r))
        if not other + margin < score:
            continue
        until_ms = job.started_ms + max(sim.rules.residency_ms, job.debt_ms)
        if until_ms > now:
            sim.protected[walk.protected].score = other
            sim.protected[walk.protected].until_ms = until_ms
            walk.protected += 1
            continue
        rows[count].value = other
        rows[count].tie = job.tie
        sim.chosen[count] = r
        count += 1
    sort(rows, count)
    for k in range(count):
        sim.victims[k].job = sim.chosen[rows[k].order]
        sim.victims[k].score = rows[rows[k].order].value
        sim.victims[k].spared = True
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
        while given < batch and at < sim.walk.victims and leads(sim, at, score):
            if sim.victims[at].spared:
                shift_victim(sim, at, 1)
                sim.chosen[given] = at
                given += 1
            at += 1
        if given < batch or board.room(sim.levels, job.workers, job.gpus):
            return given
        batch = 2 * given + 1


@compiled
def leads(sim: Sim, at: int, score: float) -> bool:
    return sim.victims[at].score + sim.rules.margin < score


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
    """Those chosen from low to high will stop; what is free of the job's nodes is kept for it."""
    walk = sim.walk
    count = board.place(sim.free, sim.levels, job.workers, job.gpus, sim.placed)
    board.give_back(sim.free, sim.levels, sim.placed, count)
    for k in range(low, high):
        at = sim.chosen[k]
        shift_victim(sim, at, -1)
        sim.victims[at].spared = False
        sim.evicted[walk.evicted] = sim.victims[at].job
        walk.evicted += 1
    for k in range(count):
        node = sim.placed[k].node
        here = min(sim.placed[k].gpus, sim.free[node])
        if here:
            board.shift(sim.free, sim.levels, node, -here)
            sim.kept[walk.kept].node = node
            sim.kept[walk.kept].gpus = here
            walk.kept += 1


@compiled
def wait_for_protected(sim: Sim, score: float) -> None:
    """A round is due again when the first whom the job leads is protected no longer."""
    walk = sim.walk
    for k in range(walk.protected):
        protected = sim.protected[k]
        if protected.score + sim.rules.margin < score:
            walk.residency_ms = min(walk.residency_ms, protected.until_ms)
