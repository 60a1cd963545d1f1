"""Completes greedy's plan: elastic jobs grow or shrink, and migrations keep their rules."""

from __future__ import annotations

from services.placement.core.migration.rules import allowed_migrations
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.resize.elastic import elastic_jobs
from services.placement.core.resize.grow import grow
from services.placement.core.resize.shrink import shrink
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import View


def complete_plan(pool: Pool, view: View, plan: Plan) -> None:
    """Add resizes to the plan, and leave only migrations that the rules allow.

    The view's board is as before.
    """
    if pool.elastic and not (view.waiting and view.reservations):
        add_resizes(pool, view, plan)
    plan.migrations = allowed_migrations(pool, view, plan)


def add_resizes(pool: Pool, view: View, plan: Plan) -> None:
    """Shrink elastic jobs for the first one that waits; let them grow if none does."""
    jobs = elastic_jobs(pool, view.now)
    with Trial(view.board) as trial:
        for assignment in plan.assignments:
            trial.take(assignment.slots)
        if view.waiting:
            shrink(jobs, view, trial, plan)
        else:
            grow(jobs, view, trial, plan)
