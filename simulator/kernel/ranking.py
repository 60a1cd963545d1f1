"""Keys of waiting and running jobs, by policy."""

from __future__ import annotations

import math

from services.priority.core.policies.base_policies import LEAST_KEY
from simulator.kernel import exploration, forecast, keys, learned, progress
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
from simulator.kernel.state import JobRow, PackedRules, Sim


@compiled
def constant_key(policy: int, rules: PackedRules, job: JobRow) -> float:
    """Return a key that never changes."""
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
def aging_key(policy: int, rules: PackedRules, job: JobRow, now: int) -> float:
    """Return a key that changes with the wait."""
    wait_s = (now - job.submit_ms) / 1000.0
    if policy == WFP3:
        return keys.wfp3(wait_s, job.run_s, job.gang)
    if policy == UNICEP:
        return keys.unicep(wait_s, job.run_s, job.gang)
    return keys.multifactor(wait_s, job.gang, rules.capacity, 0.0)


@compiled
def left_s(sim: Sim, j: int, attained_s: float) -> float:
    """Return the expected remaining run time after that service."""
    if sim.rules.by_history:
        return forecast.left_s(sim, j, attained_s)
    return max(0.001, sim.jobs[j].run_s - attained_s)


@compiled
def log_key(key: float) -> float:
    """Return the negated live score of a policy whose margin is a ratio: ties are the same ones."""
    return math.log(max(key, LEAST_KEY))


@compiled
def service_key(sim: Sim, j: int, attained_s: float) -> float:
    """Return a key that changes with attained service; the logarithm where margins are ratios."""
    policy, gang = sim.rules.policy, sim.jobs[j].gang
    if policy == LAS:
        return keys.las(attained_s * gang)
    if policy == SRTF:
        return keys.srtf(left_s(sim, j, attained_s))
    if policy == SRSF:
        return log_key(keys.srsf(left_s(sim, j, attained_s), gang))
    return log_key(forecast.forecast_of(sim, j, attained_s).gittins_s * gang)


@compiled
def key_of(sim: Sim, j: int, now: int, attained_s: float, is_running: bool) -> float:
    """Return the job's key; a lower one goes first."""
    rules, job = sim.rules, sim.jobs[j]
    if rules.policy <= F1:
        return constant_key(rules.policy, rules, job)
    if rules.policy <= MULTIFACTOR:
        return aging_key(rules.policy, rules, job, now)
    if rules.policy != LEARNED:
        return service_key(sim, j, attained_s)
    own = forecast.forecast_of(sim, j, attained_s)
    restarts = job.starts - 1 if is_running else job.starts
    running = 1.0 if is_running else 0.0
    key = learned.key_of(job, own, running, restarts, sim.theta, sim.hidden)
    if rules.deviation > 0.0:
        key -= exploration.added_score(sim, job, own, running, restarts, now)
    if rules.band <= 0.0:
        return key
    base = (
        constant_key(rules.base, rules, job)
        if rules.base <= F1
        else aging_key(rules.base, rules, job, now)
    )
    return -keys.banded(-key, -base, rules.band)


@compiled
def rank_waiting(sim: Sim, j: int, now: int) -> None:
    """Set the key of a waiting job, which has its checkpointed work behind it."""
    job = sim.jobs[j]
    job.key = key_of(sim, j, now, job.checkpointed_ms / 1000.0, False)


@compiled
def changes_in_steps(rules: PackedRules) -> bool:
    """Return whether the key of a running job changes only when its service enters the next bin."""
    by_rest = rules.policy == SRTF or rules.policy == SRSF
    return rules.policy >= GITTINS or (by_rest and rules.by_history)


@compiled
def rank_running(sim: Sim, k: int) -> None:
    """Set a running job's key as of the last ranking, and until when it is valid."""
    slot, ranked_at = sim.running[k], sim.pool.ranked_at_ms
    job = sim.jobs[slot.job]
    attained_ms = progress.attained_ms(job, ranked_at)
    attained_s = attained_ms / 1000.0
    slot.key = key_of(sim, slot.job, ranked_at, attained_s, True)
    if changes_in_steps(sim.rules):
        edge_ms = keys.bin_start_s(keys.bin_of(attained_s) + 1) * 1000.0
        unpaid_ms = max(0, slot.started_ms + job.paid_ms - ranked_at)
        slot.until_ms = ranked_at + unpaid_ms + max(1, int(math.ceil(edge_ms - attained_ms)))
