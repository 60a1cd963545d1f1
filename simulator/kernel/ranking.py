"""Keys of waiting and running jobs: which of the policies' lines is asked, and with what."""

from __future__ import annotations

import math

from services.priority.core.policies import LEAST_KEY
from simulator.kernel import forecast as outlook
from simulator.kernel import keys, learned
from simulator.kernel.codes import (
    F1,
    FCFS,
    GITTINS,
    LAS,
    LEARNED,
    MULTIFACTOR,
    SAF,
    SJF,
    SMALLEST,
    SRSF,
    SRTF,
    UNICEP,
    WFP3,
)
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Job, Rules, Sim


@compiled
def still(policy: int, rules: Rules, job: Job) -> float:
    """A key that never changes."""
    if policy == FCFS:
        return job.submit_ms / 1000.0
    if policy == SMALLEST:
        return keys.smallest_first(job.gang)
    if policy == SJF:
        return keys.sjf(job.run_s)
    if policy == SAF:
        return keys.saf(job.run_s, job.gang)
    return keys.f1(job.run_s, job.gang, (job.submit_ms - rules.epoch_ms) / 1000.0)


@compiled
def aging(policy: int, rules: Rules, job: Job, now: int) -> float:
    """A key that changes with the wait."""
    wait_s = (now - job.submit_ms) / 1000.0
    if policy == WFP3:
        return keys.wfp3(wait_s, job.run_s, job.gang)
    if policy == UNICEP:
        return keys.unicep(wait_s, job.run_s, job.gang)
    return keys.multifactor(wait_s, job.gang, rules.capacity, 0.0)


@compiled
def left_s(sim: Sim, j: int, attained_s: float) -> float:
    """What is left of a job after that service."""
    if sim.rules.by_history:
        return outlook.of(sim, j, attained_s).left_s
    return max(0.001, sim.jobs[j].run_s - attained_s)


@compiled
def ratio(key: float) -> float:
    """As the live score of a policy whose margin is a ratio, negated: ties are the same ones."""
    return math.log(max(key, LEAST_KEY))


@compiled
def served(sim: Sim, j: int, attained_s: float) -> float:
    """A key that changes with the service that a job got; of ratios the logarithm."""
    policy, gang = sim.rules.policy, sim.jobs[j].gang
    if policy == LAS:
        return keys.las(attained_s * gang)
    if policy == SRTF:
        return keys.srtf(left_s(sim, j, attained_s))
    if policy == SRSF:
        return ratio(keys.srsf(left_s(sim, j, attained_s), gang))
    return ratio(outlook.of(sim, j, attained_s).gittins_s * gang)


@compiled
def key_of(sim: Sim, j: int, now: int, attained_s: float, is_running: bool) -> float:
    """Lower goes first."""
    rules, job = sim.rules, sim.jobs[j]
    if rules.policy <= F1:
        return still(rules.policy, rules, job)
    if rules.policy <= MULTIFACTOR:
        return aging(rules.policy, rules, job, now)
    if rules.policy != LEARNED:
        return served(sim, j, attained_s)
    seen = outlook.of(sim, j, attained_s)
    restarts = job.starts - 1 if is_running else job.starts
    running = 1.0 if is_running else 0.0
    key = learned.key_of(job, seen, running, restarts, sim.theta, sim.hidden)
    if rules.band <= 0.0:
        return key
    base = still(rules.base, rules, job) if rules.base <= F1 else aging(rules.base, rules, job, now)
    return -keys.banded(-key, -base, rules.band)


@compiled
def rank_waiting(sim: Sim, j: int, now: int) -> None:
    """The key of a job that waits, with the work that it has kept."""
    job = sim.jobs[j]
    job.key = key_of(sim, j, now, job.kept_ms / 1000.0, False)


@compiled
def in_steps(rules: Rules) -> bool:
    """Does the key of a running job change only when its service enters the next bin?"""
    by_rest = rules.policy == SRTF or rules.policy == SRSF
    return rules.policy >= GITTINS or (by_rest and rules.by_history)


@compiled
def rank_running(sim: Sim, k: int) -> None:
    """The key at the last ranking of the running job in that slot, and how long it is good."""
    slot, ranked_at = sim.running[k], sim.pool.ranked_at_ms
    attained_ms = sim.jobs[slot.job].kept_ms + ranked_at - slot.started_ms
    attained_s = attained_ms / 1000.0
    slot.key = key_of(sim, slot.job, ranked_at, attained_s, True)
    if in_steps(sim.rules):
        edge_ms = keys.level_s(keys.bin_of(attained_s) + 1) * 1000.0
        slot.until_ms = ranked_at + max(1, int(math.ceil(edge_ms - attained_ms)))
