"""EASY backfilling, rule 9."""

from __future__ import annotations

from simulator.kernel import attempts, board, keys
from simulator.kernel.allocations import shift_all
from simulator.kernel.codes import NEVER
from simulator.kernel.compiled import compiled
from simulator.kernel.queue import copy
from simulator.kernel.shapes import stop_searching
from simulator.kernel.sorting import sort
from simulator.kernel.state import Floats, JobRow, Sim

BY_USER, BY_NAME = 6, 7
"""Columns of the groups of history that the jobs of a user, and of a name, share."""


@compiled
def predicted_ms(p: Floats) -> int:
    """Return the mean run time of the distribution `p` [BINS], at least 1 ms."""
    return max(1, int(round(keys.mean_left_s(p, 0.0) * 1000.0)))


@compiled
def set_head(sim: Sim, j: int, now: int, has_reservation: bool) -> None:
    """Make the job the head: compute when and on which nodes it fits, which the others may not
    delay.

    GPUs reserved for it in this round are its whole reservation.
    """
    sim.scan.head = True
    if sim.rules.preempts_by_rank:
        stop_searching(sim)
    count = 0 if has_reservation else find_nodes(sim, j, now)
    copy(sim.free, sim.off_free, len(sim.free))
    copy(sim.levels, sim.off_levels, len(sim.levels))
    for k in range(count):
        node = sim.placed[k].node
        sim.off_levels[sim.off_free[node]] -= 1
        sim.off_free[node] = -1


@compiled
def find_nodes(sim: Sim, j: int, now: int) -> int:
    """Set the shadow time and `placed`; return the number of nodes, 0 if the head never fits."""
    job, count = sim.jobs[j], sim.pool.running
    rows, free, levels = sim.sorting, sim.free, sim.levels
    sort_by_end(sim, now)
    released = 0
    while released < count and not board.has_room(levels, job.workers, job.gpus):
        other = sim.jobs[sim.running[rows[released].order].job]
        shift_all(free, levels, sim.allocations, other.first_allocation, 1)
        released += 1
    nodes = 0
    if board.has_room(levels, job.workers, job.gpus):
        sim.scan.shadow_ms = int(rows[rows[released - 1].order].value) if released else now
        nodes = board.place(free, levels, job.workers, job.gpus, sim.placed)
        board.give_back(free, levels, sim.placed, nodes)
    for k in range(released):
        other = sim.jobs[sim.running[rows[k].order].job]
        shift_all(free, levels, sim.allocations, other.first_allocation, -1)
    return nodes


@compiled
def sort_by_end(sim: Sim, now: int) -> None:
    """Sort the running jobs by (expected end, job id). Times in ms are exact in a float."""
    rows, count = sim.sorting, sim.pool.running
    for k in range(count):
        slot = sim.running[k]
        if slot.expected_end_ms <= now:
            slot.expected_end_ms = expected_end_ms(sim.jobs[slot.job], now)
        rows[k].value = float(slot.expected_end_ms)
        rows[k].tie = slot.tie
    sort(rows, count)


@compiled
def expected_end_ms(job: JobRow, now: int) -> int:
    """Return the expected end; an exceeded walltime is doubled until it is not."""
    walltime_ms = max(1, job.walltime_ms)
    while job.started_ms + walltime_ms <= now:
        walltime_ms *= 2
    return job.started_ms + walltime_ms


@compiled
def program_of(sim: Sim, j: int) -> int:
    """Return the group of the jobs of the same tenant, user and name; -1 without user or name."""
    return sim.groups[j, BY_NAME] if sim.groups[j, BY_USER] >= 0 else -1


@compiled
def note_longest_runs(sim: Sim, now: int) -> None:
    """Note the longest run so far of the running jobs of each name, once in this round."""
    if sim.scan.noted_longest:
        return
    sim.scan.noted_longest = True
    for k in range(sim.pool.running):
        slot = sim.running[k]
        group = program_of(sim, slot.job)
        if group < 0:
            continue
        run_ms = now - slot.started_ms
        if sim.longest_round[group] != sim.pool.rounds:
            sim.longest_round[group] = sim.pool.rounds
            sim.longest_ms[group] = 0
        sim.longest_ms[group] = max(sim.longest_ms[group], run_ms)


@compiled
def estimate_ms(sim: Sim, j: int, now: int) -> int:
    """Return the job's estimate: at least the longest run so far of its name, and of its own
    attempts.
    """
    job = sim.jobs[j]
    if not sim.rules.guards_estimates:
        return job.walltime_ms
    note_longest_runs(sim, now)
    group = program_of(sim, j)
    longest_ms = job.longest_ms
    if group >= 0 and sim.longest_round[group] == sim.pool.rounds:
        longest_ms = max(longest_ms, sim.longest_ms[group])
    return max(job.walltime_ms, longest_ms)


@compiled
def backfill(sim: Sim, j: int, now: int) -> bool:
    """Start a job behind the head: anywhere if it ends by the shadow, else off the head's nodes.

    Return False if it has no room on any nodes.
    """
    job, placed = sim.jobs[j], sim.placed
    if not board.has_room(sim.levels, job.workers, job.gpus):
        return False
    shadow_ms = sim.scan.shadow_ms
    if shadow_ms == NEVER or now + estimate_ms(sim, j, now) <= shadow_ms:
        count = board.place(sim.free, sim.levels, job.workers, job.gpus, placed)
        for k in range(count):
            if sim.off_free[placed[k].node] >= 0:
                board.shift(sim.off_free, sim.off_levels, placed[k].node, -placed[k].gpus)
        attempts.start(sim, j, count, now)
    elif board.has_room(sim.off_levels, job.workers, job.gpus):
        count = board.place(sim.off_free, sim.off_levels, job.workers, job.gpus, placed)
        for k in range(count):
            board.shift(sim.free, sim.levels, placed[k].node, -placed[k].gpus)
        attempts.start(sim, j, count, now)
    return True
