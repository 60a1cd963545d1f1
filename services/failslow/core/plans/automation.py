"""Plans that need no operator: applied as far as the breaker allows, which opens where it does not.

The breaker is open while a plan waits for it. It closes when nodes are schedulable again, when the
plans that waited have ended or were approved, or when the pool is no longer automatic.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.failslow.core.mitigation.breaker import Breaker
from services.failslow.core.mitigation.mitigation_state import OpenPlan
from services.failslow.core.plans.planning import applied
from services.failslow.core.state import FailSlowState
from shared.contracts.breaker import BreakerChanged
from shared.ledger.decider import Decision


def settle_plans(state: FailSlowState) -> Iterator[Decision]:
    """Apply plans of Berth that wait, oldest first, and note when the breaker opens or closes."""
    if state.pool is None or not (state.mitigation.plans or state.fleet.is_breaker_open):
        return
    blocked = ""
    if state.pool.mitigation == "automatic":
        for open_plan in [plan for plan in state.mitigation.plans.values() if may_apply(plan)]:
            if has_room(state, open_plan):
                gang = state.gangs.get(open_plan.job_id)
                yield Decision(
                    applied(open_plan, is_automatic=True), "", gang.traceparent if gang else ""
                )
            else:
                blocked = blocked or open_plan.plan_id
    if bool(blocked) != state.fleet.is_breaker_open:
        yield Decision(breaker_of(state, blocked))


def may_apply(open_plan: OpenPlan) -> bool:
    return open_plan.plan.actor == "berth" and not open_plan.is_applied


def has_room(state: FailSlowState, open_plan: OpenPlan) -> bool:
    """Return whether all nodes that the plan cordons may be out of use as well."""
    out = state.fleet.out_of_use
    requested = [node for node in open_plan.plan.node_ids if node not in out]
    return len(breaker(state).allowed(requested, len(state.fleet.nodes), out)) == len(requested)


def breaker(state: FailSlowState) -> Breaker:
    return Breaker(state.pool.mitigation_share) if state.pool else Breaker()


def breaker_of(state: FailSlowState, plan_id: str) -> BreakerChanged:
    nodes = len(state.fleet.nodes)
    return BreakerChanged(
        pool=state.name,
        is_open=bool(plan_id),
        plan_id=plan_id,
        nodes=nodes,
        out_of_use=len(state.fleet.out_of_use),
        most=breaker(state).most(nodes),
    )
