"""The record itself in the form of a simulation's outcome."""

from __future__ import annotations

import numpy as np

from simulator.metrics.outcome import ScheduleOutcome
from simulator.recorded.slice import RecordedSlice


def recorded_outcome(part: RecordedSlice) -> ScheduleOutcome:
    """Return the outcome of the record; jobs in the order of the scenario, its clock too.

    A job starts when it first got its GPUs. Time that a node took to prepare it counts in its
    completion, not in its wait for GPUs.
    """
    past, scenario = part.past, part.scenario
    scale = past.time_scale
    zero_ms = past.from_ms - round(scenario.window_s[0] * 1000 / scale)

    def seconds(at: int) -> float:
        return (at - zero_ms) / 1000 * scale if at >= 0 else float("nan")

    end = past.last_at
    ended = [job.ended_at for job in part.jobs]
    held_ms = [job.held_ms + (end - job.placed_at if job.is_running else 0) for job in part.jobs]
    held_s = np.array(held_ms, np.float64) * scale / 1000
    work_s = np.array([job.duration_s for job in scenario.jobs], np.float64)
    codes = {name: n for n, name in enumerate(sorted({job.tenant for job in part.jobs}))}
    if past.held is not None:
        past.held.advance(min(end, past.to_ms))
    held = np.zeros(0) if past.held is None else past.held.held * scale / 1000
    return ScheduleOutcome(
        submit_s=np.array([job.submit_s for job in scenario.jobs], np.float64),
        start_s=np.array([seconds(job.first_placed_at) for job in part.jobs]),
        end_s=np.array([seconds(at) for at in ended]),
        duration_s=work_s,
        gpus=np.array([job.gpus for job in scenario.jobs], np.float64),
        tenant=np.array([codes[job.tenant] for job in part.jobs], np.int64),
        starts=np.array([job.stops + (job.first_placed_at >= 0) for job in part.jobs], np.int64),
        held_s=held_s,
        lost_s=np.maximum(held_s - work_s, 0.0),
        fits=np.ones(len(part.jobs), np.bool_),
        capacity_gpus=part.mean_gpus,
        window_s=scenario.window_s,
        held_by_hour=held,
        horizon_s=seconds(end),
    )
