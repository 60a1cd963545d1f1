"""A running elastic job stops and goes on from its checkpoint with another number of workers."""

from __future__ import annotations

from services.placement.core.lifecycle import ends
from services.placement.core.pool.allocations import allocations_of
from services.placement.core.pool.state import Pool
from services.placement.core.round.plan import Resize
from shared.contracts.attempts import JobResized
from shared.ledger.decider import Decision


def resize_job(pool: Pool, resize: Resize, now: int) -> Decision:
    """Return the decision that stops the job and names what it goes on with."""
    job, by = resize.job, resize.by
    event = JobResized(
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        reason="shrink" if len(resize.slots) < len(job.allocations) else "grow",
        from_workers=len(job.allocations),
        to_workers=len(resize.slots),
        target=allocations_of(resize.slots),
        by_job_id=by.job_id if by else "",
        lost_work_s=job.lost_work_s(now, pool.time_scale),
    )
    return ends.job_decision(job, by.cause if by else "", event)
