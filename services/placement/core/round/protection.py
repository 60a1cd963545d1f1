"""How long a job on GPUs is protected from being stopped, migrated or resized."""

from __future__ import annotations

from services.placement.core.pool.job import Job
from shared.contracts.checkpoint import wall_ms

NEVER = 1 << 62


def protected_ms(job: Job, min_residency_ms: int) -> int:
    """Return the wall ms from the job's start before which rank does not stop it.

    The rule: a job may be stopped by rank at `now` only if

        now - started_at >= max(min_residency_ms, debt_ms)

    where `debt_ms` is the cost of its last preemption: the work that it lost (since its last
    checkpoint, `shared.contracts.checkpoint`) plus the restart that this start
    paid (`simulated.restart_s`; 0 if the spec has none). It is 0 for a job that was never
    preempted while it ran, and of a job whose program failed and which began anew. So each start
    after a preemption does at least what that preemption cost, and no two jobs can stop each
    other for ever without either getting on. All in whole ms of the pool's clock.
    """
    return max(min_residency_ms, job.debt_ms)


def guarantee_end_ms(job: Job, time_scale: float) -> int | None:
    """Return the ms when the guarantee ends, 0 without one; None while it has not begun."""
    if not job.spec.guaranteed_s:
        return 0
    if not job.started_at:
        return None
    return job.started_at + wall_ms(job.spec.guaranteed_s, time_scale)


def protected_until_ms(job: Job, min_residency_ms: int, time_scale: float) -> int:
    """Return the ms when both the residency and the guarantee of a running job are over."""
    residency_end = job.started_at + protected_ms(job, min_residency_ms)
    return max(residency_end, guarantee_end_ms(job, time_scale) or 0)


def movable_from_ms(job: Job, min_residency_ms: int, time_scale: float) -> int:
    """Return the ms from which a job may be migrated or resized.

    It is NEVER for one that does not run or may not be stopped.
    """
    if job.phase != "running" or not (job.spec.preemptible or job.spec.spot):
        return NEVER
    return protected_until_ms(job, min_residency_ms, time_scale)
