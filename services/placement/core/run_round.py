"""One round: a view of the pool, and a plan for it that is carried out or left to the solver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from services.placement.core.carry_out import carry_out
from services.placement.core.complete import complete_plan
from services.placement.core.migration.leave import retry_waiting_plans
from services.placement.core.migration.targets import land, targets_reserved
from services.placement.core.pool.state import Pool
from services.placement.core.round.greedy import plan
from services.placement.core.round.packing import policy_of
from services.placement.core.round.view import view_of
from services.placement.core.scheduled import allot
from services.placement.core.scheduled.run import plan_round
from services.placement.core.solver import contended
from shared.ledger.decider import Decision

NOTHING_RESERVED = nullcontext()


def run(pool: Pool, now: int) -> Iterator[Decision]:
    """Run a round that is due; a contended one is opened for the solver instead."""
    yield from land(pool, now)
    yield from retry_waiting_plans(pool, now)
    if pool.is_scheduled:
        if (step := allot.next_step(pool, now)) is not None:
            yield step
        if now < (pool.schedule.rounds_from() or now):
            return
        if (planned := plan_round(pool, now)) is not None:
            yield from carry_out(pool, *planned, "")
            return
    view = view_of(pool, now)
    with targets_reserved(pool) if pool.migrations else NOTHING_RESERVED:
        proposal = plan(view, policy_of(pool))
        opened = contended.open_round(pool, view, proposal)
        if opened is None:
            complete_plan(pool, view, proposal)
    if opened is not None:
        yield opened
    else:
        yield from carry_out(pool, view, proposal, "late" if pool.open_round else "")
