"""A round of a pool with a scheduler: the plan by its allotments, or none where there are none."""

from __future__ import annotations

from services.placement.core.migration.targets import targets_reserved
from services.placement.core.pool.state import Pool
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import View, view_of
from services.placement.core.scheduled.plan import plan_scheduled


def plan_round(pool: Pool, now: int) -> tuple[View, Plan] | None:
    """Return the view and its plan by the allotments; None where the last proposal was refused."""
    if pool.schedule.refused:
        return None
    view = view_of(pool, now)
    with targets_reserved(pool):
        return view, plan_scheduled(pool, view)
