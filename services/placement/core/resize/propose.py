"""Elastic jobs grow into idle GPUs, and shrink so that a waiting job can start.

A resize is a restart from the last checkpoint (`migration/targets.py` has the path), so it is
never free; `grow.py` and `shrink.py` have the rules. Neither happens to a job that may not be
preempted, is inside its guarantee, or started less than `min_residency_s` ago: so at most once per
that time, and no job grows and shrinks for ever.
"""

from __future__ import annotations

from services.placement.core.pool.draft import Draft
from services.placement.core.pool.state import Pool
from services.placement.core.resize.elastic import elastic_jobs
from services.placement.core.resize.grow import grow
from services.placement.core.resize.shrink import shrink
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import View


def add_resizes(pool: Pool, view: View, plan: Plan) -> None:
    """Add to the plan which jobs should grow or shrink; the view's board is as before."""
    if not pool.elastic or (view.waiting and view.reservations):
        return
    jobs = elastic_jobs(pool, view.now)
    with Draft(view.board) as draft:
        if view.waiting:
            shrink(jobs, view, draft, plan)
        else:
            grow(jobs, view, draft, plan)
