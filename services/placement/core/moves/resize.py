"""Elastic jobs grow into idle GPUs, and shrink so that a waiting job can start.

A resize is a restart from the last checkpoint (`targets.py` has the path), so it is never free;
`grow.py` and `shrink.py` have the rules. Neither happens to a job that may not be preempted, is
inside its guarantee, or started less than `min_residency_s` ago: so at most once per that time,
and no job grows and shrinks for ever.
"""

from __future__ import annotations

from services.placement.core.lifecycle import gangs
from services.placement.core.moves.grow import grow
from services.placement.core.moves.shrink import shrink
from services.placement.core.pool.allocations import allocations_of
from services.placement.core.pool.draft import Draft
from services.placement.core.pool.state import Pool
from services.placement.core.round.plan import Plan, Resize
from services.placement.core.round.view import View
from shared.contracts.placement import JobResized
from shared.ledger.decider import Decision


def propose(pool: Pool, view: View, plan: Plan) -> None:
    """Add to the plan which jobs should grow or shrink; the view's board is as before."""
    if not pool.elastic:
        return
    with Draft(view.board) as draft:
        if not view.waiting:
            grow(pool, view, draft, plan)
        elif not view.reservations:
            shrink(pool, view, draft, plan)


def resized(pool: Pool, resize: Resize, now: int) -> Decision:
    """Return the decision that stops the job and names what it goes on with."""
    job, by = resize.job, resize.by
    event = JobResized(
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        reason="shrink" if by else "grow",
        from_workers=len(job.allocations),
        to_workers=len(resize.slots),
        target=allocations_of(resize.slots),
        by_job_id=by.job_id if by else "",
        lost_work_s=job.lost_work_s(now, pool.time_scale),
    )
    return gangs.job_decision(job, by.cause if by else "", event)
