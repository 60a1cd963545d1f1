"""The one job for which GPUs are reserved because it waited too long."""

from __future__ import annotations

from itertools import takewhile

from services.placement.core.pool.shape import SPOT_TIER
from services.placement.core.pool.state import Pool

LACKS_NODES = ("no_node_fits", "draining")
"""Reasons of a job that free GPUs would not end: the nodes that it needs are not in the round."""


def oldest_overdue(pool: Pool, now: int) -> str:
    """Return the job that waited longest beyond `reserve_wait_s`, in the highest class; or none.

    It stays the same job until it runs, whatever its rank. Jobs wait in the order in which they
    came, so that none is looked at that is not overdue.
    """
    after_s = pool.settings.reserve_wait_s if pool.settings else None
    if after_s is None:
        return ""
    due = now - round(after_s * 1000 / pool.time_scale)
    overdue = [
        (job.tier, job.since, job.job_id)
        for job in takewhile(lambda job: job.since <= due, pool.waiting.values())
        if job.tier < SPOT_TIER and job.hold_reason not in LACKS_NODES
    ]
    return min(overdue)[2] if overdue else ""
