"""A round of a pool with a scheduler: its proposal where one is due, and the plan by that."""

from __future__ import annotations

from collections.abc import Generator

from services.placement.core.migration.targets import targets_reserved
from services.placement.core.pool.state import Pool
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import View, view_of
from services.placement.core.scheduled import allot
from services.placement.core.scheduled.plan import plan_scheduled
from shared.ledger.decider import Decision


def plan_round(pool: Pool, now: int) -> Generator[Decision, None, tuple[View, Plan] | None]:
    """Return the view and its plan by the allotments; None where the last proposal was refused."""
    if allot.is_due(pool, now):
        yield allot.allot(pool, now)
    if pool.schedule.refused:
        return None
    view = view_of(pool, now)
    with targets_reserved(pool):
        return view, plan_scheduled(pool, view)
