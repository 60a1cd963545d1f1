"""Exploration of a network's scores, for trainings that follow a gradient of what was decided."""

from __future__ import annotations

import math

from simulator.kernel.codes import CONTEXT_FEATURES, DRAW, JOB_FEATURES, SCORED_MS
from simulator.kernel.compiled import compiled
from simulator.kernel.state import ForecastRow, JobRow, Sim


@compiled
def added_score(
    sim: Sim, job: JobRow, forecast: ForecastRow, running: float, restarts: int, now: int
) -> float:
    """Record what the network saw of a job, and return what is added to its score; 0 after the
    last draw.
    """
    pool = sim.pool
    if pool.scored == len(sim.decisions):
        return 0.0
    row = sim.decisions[pool.scored]
    pool.scored += 1
    row[0] = forecast.ln_gittins / 10.0
    row[1] = forecast.ln_left / 10.0
    row[2] = job.ln_gpus / 5.0
    row[3] = job.ln_share / 5.0
    row[4] = forecast.ln_attained / 10.0
    row[5] = job.spread
    row[6] = math.log(restarts + 1.0)
    row[7] = running
    for c in range(CONTEXT_FEATURES):
        row[JOB_FEATURES + c] = sim.context[c]
    row[SCORED_MS] = now
    added: float = sim.rules.deviation * row[DRAW]
    return added
