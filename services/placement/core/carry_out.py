"""Carries out the plan of a round: its decisions, in the order in which they are recorded."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.migration.migrate import migrate_job
from services.placement.core.pool.allocations import allocations_of
from services.placement.core.pool.loss_budget import MILLI, SHARES
from services.placement.core.pool.state import Pool
from services.placement.core.resize.resize import resize_job
from services.placement.core.round.plan import Plan
from services.placement.core.round.preempt import preempt_victim, stop_unallotted
from services.placement.core.round.reasons import defer_stops, hold_job
from services.placement.core.round.start import placement_terms, start_job
from services.placement.core.round.view import View
from shared.contracts.construct import construct
from shared.contracts.placement import PreemptionPaused, RoundEnded, SolverStatus
from shared.ledger.decider import Decision


def carry_out(pool: Pool, view: View, proposal: Plan, solver: SolverStatus) -> Iterator[Decision]:
    """End the round with this plan of it; `solver`: why the solver did not plan it."""
    tried_to_grow = not pool.waiting
    stopped = proposal.stopped_jobs()
    for deferral in proposal.deferrals:
        yield from defer_stops(deferral, stopped)
    for eviction in proposal.evictions:
        yield preempt_victim(eviction, view.now)
    for job in proposal.stops:
        yield stop_unallotted(view, job)
    for assignment in proposal.assignments:
        terms = placement_terms(view, proposal, assignment)
        allocations = allocations_of(assignment.slots)
        yield start_job(view, assignment.job, allocations, proposal.planner, terms, solver)
    for hold in proposal.holds:
        yield hold_job(hold)
    for migration in proposal.migrations:
        yield migrate_job(pool, migration, view.now, "")
    for resize in proposal.resizes:
        yield resize_job(pool, resize, view.now)
    if view.rank_rules and (view.rank_rules.is_paused or stopped):
        yield from report_pause(pool, view)
    if pool.waiting or pool.open_round or pool.waiting_plans or pool.can_change():
        yield Decision(
            construct(
                RoundEnded,
                pool=pool.name,
                waiting=len(pool.waiting),
                unfinished=proposal.unfinished or (not tried_to_grow and pool.can_grow()),
                again_at=proposal.again_at,
            )
        )


def report_pause(pool: Pool, view: View) -> Iterator[Decision]:
    """Yield one event where the stops so far have spent the loss budget."""
    rules = view.rank_rules
    if rules is None or rules.protection.progress is None or pool.loss.is_reported:
        return
    loss = pool.loss_at(view.now)
    if loss.spent <= 0 or not loss.is_paused:
        return
    to_gpu_s = pool.time_scale / (SHARES * MILLI * 1000)
    yield Decision(
        construct(
            PreemptionPaused,
            pool=pool.name,
            spent_gpu_s=loss.spent * to_gpu_s,
            budget_gpu_s=loss.budget * to_gpu_s,
            until=loss.opens_at_ms,
        )
    )
