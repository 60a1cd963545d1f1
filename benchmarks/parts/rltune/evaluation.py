"""Outcome of the trained RLTune on a batch, as the other policies have it."""

from __future__ import annotations

import numpy as np

from benchmarks.parts.rltune.episode import Floats, run_episode
from simulator.kernel.batches import NODES, JobBatch
from simulator.metrics.outcome import ScheduleOutcome


def run_batch(batch: JobBatch, actor: Floats, random: np.random.Generator) -> ScheduleOutcome:
    """Return the outcome on RLTune's cluster; picks are drawn, as in its evaluation."""
    work, capacity = batch.work, float(NODES.sum())
    submit_s, run_s = work.submit_ms / 1000.0, work.duration_ms / 1000.0
    jobs = (submit_s, run_s, work.gang)
    start_s = run_episode(jobs, len(NODES), actor, random.random(len(work))).start_s
    end_s = start_s + run_s
    return ScheduleOutcome(
        submit_s=submit_s,
        start_s=start_s,
        end_s=end_s,
        duration_s=run_s,
        gpus=work.gang.astype(np.float64),
        tenant=work.tenant,
        starts=np.ones(len(work), np.int64),
        held_s=run_s,
        lost_s=np.zeros(len(work)),
        fits=np.ones(len(work), np.bool_),
        capacity_gpus=capacity,
        window_s=(float(submit_s[0]), float(submit_s[-1])),
        held_by_hour=np.zeros(0),
        horizon_s=float(end_s.max()),
    )
