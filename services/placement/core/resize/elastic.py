"""Elastic jobs grow into idle GPUs, and shrink so that a waiting job can start.

A resize is a restart from the last checkpoint (`migration/targets.py` has the path), so it is
never free; `grow.py` and `shrink.py` have the rules. Neither happens to a job that may not be
preempted, is inside its guarantee, or started less than `min_residency_s` ago: so at most once per
that time, and no job grows and shrinks for ever.
"""

from __future__ import annotations

from typing import NamedTuple

from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import Slot
from services.placement.core.pool.state import Pool
from services.placement.core.round.protection import movable_from_ms

RESIZES_PER_ROUND = 4


class ElasticJob(NamedTuple):
    """A running elastic job, with what a resize needs to know of it."""

    job: Job
    slots: list[Slot]
    """In rank order."""
    lost_work_s: float
    """Cluster seconds that a restart would undo."""
    movable_ms: int
    """ms from which it may be resized; `NEVER` for a job that may not be stopped."""
    is_in_use: bool
    """Every node that it holds is in use: none is cordoned or lost."""


def elastic_jobs(pool: Pool, now: int) -> list[ElasticJob]:
    """Return the elastic jobs that run, in the order in which they started."""
    residency_ms, time_scale = pool.min_residency_ms, pool.time_scale
    jobs = []
    for job in pool.running_elastic():
        slots = slots_by_rank(job)
        movable_ms = movable_from_ms(job, residency_ms, time_scale)
        is_in_use = all(map(pool.board.is_indexed, slots))
        lost_work_s = job.lost_work_s(now, time_scale)
        jobs.append(ElasticJob(job, slots, lost_work_s, movable_ms, is_in_use))
    return jobs
