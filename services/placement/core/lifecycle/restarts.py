"""Measures a restart: from a job's start on a real node until its work goes on, by its reports.

Simulated jobs declare it (`simulated.restart_s`). Others are measured at the first report of each
start: the time until then, less the work that the report says was done since the checkpoint from
which the start went on. Until a job has shown its own, the pool's `assumed_restart_s` counts.

A report is the word of a tenant's program, and a dear restart protects the job from stops: what is
believed is at most `RESTART_MOST_S`, and no longer than the start has run by the node's clock.
"""

from __future__ import annotations

from services.placement.core.pool.job import Job
from shared.contracts.checkpoint import wall_ms

RESTART_MOST_S = 1800.0
"""Cluster s of a restart that are believed."""


def restart_by_progress(
    job: Job, ran_ms: int, step: int, iteration_s: float, time_scale: float
) -> int | None:
    """Return the wall ms of restart by the first iterations that a start reports; None: not known.

    Iterations are counted from the last checkpoint that the job reported. Where they would take
    longer than the start has run, it began later than that, and one iteration is taken off.
    """
    if job.spec.simulated is not None or has_reported(job):
        return None
    iteration_ms = min(iteration_s * 1000, 1e14)
    work_ms = max(0, step - job.checkpoint_step) * iteration_ms
    if work_ms > ran_ms:
        work_ms = min(iteration_ms, ran_ms)
    return bounded(round(ran_ms - work_ms), time_scale)


def restart_by_checkpoint(job: Job, ran_ms: int, step: int, time_scale: float) -> int | None:
    """Return the same by the first checkpoint that a start reports.

    The steps since the last checkpoint take as long as they took between two earlier ones, or
    else the interval that the job declares.
    """
    if job.spec.simulated is not None or has_reported(job):
        return None
    steps = step - job.checkpoint_step
    work_ms = steps * job.step_us // 1000 if job.step_us and steps > 0 else None
    if work_ms is None:
        work_ms = job.interval_ms(time_scale)
    if work_ms is None or work_ms > ran_ms:
        return None
    return bounded(ran_ms - work_ms, time_scale)


def has_reported(job: Job) -> bool:
    """Return whether this start has reported already: only its first report shows the restart."""
    return job.forecast is not None or job.checkpointed_ms > 0


def bounded(restart_ms: int, time_scale: float) -> int:
    return max(0, min(restart_ms, wall_ms(RESTART_MOST_S, time_scale)))
