"""A round: the line is walked, jobs start, others are stopped (rules 2 to 10)."""

from __future__ import annotations

import math

from simulator.kernel import attempts, board, easy
from simulator.kernel import defragment as gather
from simulator.kernel import queue as line
from simulator.kernel import victims as search
from simulator.kernel.codes import EASY, NEVER, SETTLE_MS, STRICT
from simulator.kernel.compiled import compiled
from simulator.kernel.shapes import fail, passed_over
from simulator.kernel.state import Sim


@compiled
def hold(sim: Sim, now: int) -> None:
    """One round at this instant."""
    pool = sim.pool
    pool.first_change_ms = NEVER
    pool.round_at_ms = NEVER
    pool.again_at_ms = NEVER
    pool.rounds += 1
    begin(sim)
    gather.land(sim, now)
    if line.is_aging(sim.rules):
        line.rank_all(sim, pool.ranked_at_ms)
    line.line_up(sim)
    walk_down(sim, now)
    finish(sim, now)


@compiled
def begin(sim: Sim) -> None:
    """Nobody was asked yet."""
    walk = sim.walk
    walk.open_shapes = sim.pool.waiting_shapes
    walk.started = 0
    walk.claimed = sim.pool.claims > 0
    walk.kept = 0
    walk.evictions = 0
    walk.searches = 0
    walk.gathers = 0
    walk.gather_tries = 0
    walk.evicted = 0
    walk.victims = 0
    walk.protected = 0
    walk.bar = -math.inf
    walk.unfinished = False
    walk.head = False
    walk.shadow_ms = NEVER
    walk.residency_ms = NEVER
    for s in range(len(sim.shapes)):
        sim.shapes[s].failed = False
        sim.shapes[s].hopeless = not sim.rules.ranked
        sim.shapes[s].scattered = sim.rules.move_after_ms == NEVER


@compiled
def walk_down(sim: Sim, now: int) -> None:
    """Each in its turn, until nobody may start or the mode ends the walk."""
    walk = sim.walk
    for i in range(sim.pool.waiting):
        j = sim.line[i]
        if passed_over(sim.shapes[sim.kinds[j]]):
            if walk.open_shapes == 0:
                return
        else:
            started = walk.started
            goes_on = serve(sim, j, now)
            if walk.started > started:
                sim.gone[started - walk.landed] = i
            if not goes_on:
                return


@compiled
def serve(sim: Sim, j: int, now: int) -> bool:
    """Starts the job if it may; False ends the walk."""
    walk, job = sim.walk, sim.jobs[j]
    shape = sim.shapes[job.kind]
    if walk.head:
        if not easy.fill(sim, j, now):
            fail(walk, shape)
        return True
    if not shape.failed and board.room(sim.levels, job.workers, job.gpus):
        count = board.place(sim.free, sim.levels, job.workers, job.gpus, sim.placed)
        attempts.start(sim, j, count, now)
        return True
    fail(walk, shape)
    stops_others = not shape.hopeless and search.search(sim, j, now)
    stops_others = stops_others or gather.gather(sim, j, now)
    if sim.rules.mode == EASY:
        easy.lead(sim, j, now, stops_others)
    return sim.rules.mode != STRICT


@compiled
def finish(sim: Sim, now: int) -> None:
    """What was kept is free again for those who claim it, victims wait anew."""
    pool, walk = sim.pool, sim.walk
    if walk.kept:
        search.give_back(sim)
    if walk.started > walk.landed:
        line.close_up(sim)
    if pool.claims:
        line.end_claims(sim)
    for k in range(walk.evicted):
        attempts.stop(sim, sim.evicted[k], now)
        line.join(sim, sim.evicted[k], now)
    changed = walk.started > 0 or walk.evicted > 0 or walk.unfinished
    if pool.waiting and changed:
        if line.ranked(pool, sim.rules, now):
            line.look_again(sim, now)
        if sim.rules.ranked:
            pool.first_change_ms = now
            pool.round_at_ms = now + SETTLE_MS
    pool.again_at_ms = walk.residency_ms
