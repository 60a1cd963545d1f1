"""A round of a pool with a scheduler: its proposal where one is due, and the plan by that."""

from __future__ import annotations

from collections.abc import Generator

from services.placement.core.carry_out import carry_out
from services.placement.core.migration.targets import targets_reserved
from services.placement.core.pool.state import Pool
from services.placement.core.round.view import view_of
from services.placement.core.scheduled import allot
from services.placement.core.scheduled.plan import plan_scheduled
from shared.ledger.decider import Decision


def run_scheduled(pool: Pool, now: int) -> Generator[Decision, None, bool]:
    """Return whether the round was run: not where the last proposal was refused."""
    if allot.is_due(pool, now):
        yield allot.allot(pool, now)
    if pool.schedule.refused:
        return False
    view = view_of(pool, now)
    with targets_reserved(pool):
        proposal = plan_scheduled(pool, view)
    yield from carry_out(pool, view, proposal, "")
    return True
