"""The learned policy: the scalar twin of priority's `learned.features` and of its network."""

from __future__ import annotations

import math

from simulator.kernel import forecast, keys, progress
from simulator.kernel.codes import (
    CONTEXT_FEATURES,
    CONTEXT_MS,
    INPUTS,
    JOB_FEATURES,
    LEAST_GPUS,
    PER_HIDDEN,
)
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Floats, ForecastRow, JobRow, PackedRules, PoolState, Sim


@compiled
def key_of(
    job: JobRow, forecast: ForecastRow, running: float, restarts: int, theta: Floats, hidden: Floats
) -> float:
    """Return minus the network's score; `hidden` [1 + H] is the context's part, see
    `weights.py`.
    """
    x0 = forecast.ln_gittins / 10.0
    x1 = forecast.ln_left / 10.0
    x2 = job.ln_gpus / 5.0
    x3 = job.ln_share / 5.0
    x4 = forecast.ln_attained / 10.0
    x5 = job.spread
    x6 = math.log(restarts + 1.0)
    x7 = running
    score: float = hidden[0] - 5.0 * (x0 + x1 + x2)
    t = theta
    score += t[0] * x0 + t[1] * x1 + t[2] * x2 + t[3] * x3 + t[4] * x4 + t[5] * x5 + t[6] * x6
    score += t[7] * x7
    at = INPUTS
    for h in range(hidden.shape[0] - 1):
        z = hidden[1 + h]
        z += t[at] * x0 + t[at + 1] * x1 + t[at + 2] * x2 + t[at + 3] * x3
        z += t[at + 4] * x4 + t[at + 5] * x5 + t[at + 6] * x6 + t[at + 7] * x7
        score += t[at + INPUTS + 1] * math.tanh(z)
        at += PER_HIDDEN
    return -score


@compiled
def set_job_features(job: JobRow, p: Floats, capacity: float) -> None:
    """Set the features of a job that do not depend on its service."""
    gpus = max(job.gang, LEAST_GPUS)
    job.ln_gpus = math.log(gpus)
    job.ln_share = math.log(gpus / capacity)
    job.spread = spread_of(p)


@compiled
def spread_of(p: Floats) -> float:
    """Return ln(p90 / p10) / 10."""
    low = keys.quantile_s(p, 0.1)
    high = keys.quantile_s(p, 0.9)
    return math.log(max(high, 1.0) / max(low, 1.0)) / 10.0


@compiled
def service_of(job: JobRow, forecast: ForecastRow) -> float:
    """Return ln(Gittins rank in s, times GPUs) / 10."""
    return (forecast.ln_gittins + job.ln_gpus) / 10.0


@compiled
def next_context_ms(pool: PoolState, rules: PackedRules) -> int:
    """Return the first ranking that renews the context, if only time passes."""
    left_ms = pool.context_at_ms + CONTEXT_MS - pool.ranked_at_ms
    return pool.ranked_at_ms + max(1, -(-left_ms // rules.refresh_ms)) * rules.refresh_ms


@compiled
def update_context(sim: Sim, now: int) -> None:
    """Average over all waiting and running jobs into `hidden`; keys of the running become stale."""
    pool, capacity = sim.pool, sim.rules.capacity
    pool.context_at_ms = now
    demand = 0.0
    waiting = 0.0
    for i in range(pool.waiting):
        j = sim.queue[i]
        job = sim.jobs[j]
        demand += max(job.gang, LEAST_GPUS)
        waiting += service_of(job, forecast.forecast_of(sim, j, job.checkpointed_ms / 1000.0))
    running = 0.0
    for k in range(pool.running):
        slot = sim.running[k]
        job = sim.jobs[slot.job]
        slot.until_ms = 0
        attained_s = progress.attained_ms(job, now) / 1000.0
        running += service_of(job, forecast.forecast_of(sim, slot.job, attained_s))
    if pool.running:
        running /= pool.running
    context = sim.context
    context[0] = math.log(1.0 + demand / capacity)
    context[1] = pool.used / capacity
    context[2] = waiting / pool.waiting
    context[3] = running
    apply_context(sim.theta, sim.hidden, context[0], context[1], context[2], context[3])


@compiled
def apply_context(
    theta: Floats, hidden: Floats, pressure: float, used: float, waiting: float, running: float
) -> None:
    """Set the context's part of the score [0] and of each hidden unit [1 + h]."""
    context = (pressure, used, waiting, running)
    hidden[0] = 0.0
    for c in range(CONTEXT_FEATURES):
        hidden[0] += theta[JOB_FEATURES + c] * context[c]
    at = INPUTS
    for h in range(hidden.shape[0] - 1):
        hidden[1 + h] = theta[at + INPUTS]
        for c in range(CONTEXT_FEATURES):
            hidden[1 + h] += theta[at + JOB_FEATURES + c] * context[c]
        at += PER_HIDDEN
