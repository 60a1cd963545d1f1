"""Plans that need no operator: applied as far as the breaker allows, which opens where it does not.

The breaker is open while a plan waits for it. It closes when nodes are schedulable again, when the
plans that waited have ended or were approved, or when the pool is no longer automatic.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from services.failslow.core.mitigation.breaker import Breaker
from services.failslow.core.mitigation.mitigation_state import OpenPlan
from services.failslow.core.plans.confirmation import may_cordon
from services.failslow.core.plans.measuring import VERDICT_S
from services.failslow.core.plans.planning import applied
from services.failslow.core.state import FailSlowState
from shared.contracts.breaker import BreakerChanged
from shared.contracts.mitigation import MitigationApplied
from shared.ledger.decider import Decision

MEASURED = "measured"
"""Rule of the plans that follow from the verdict of a measurement."""
ONE_TENANT = "not cordoned: jobs of one tenant alone have reported these nodes as slow"


def settle_plans(state: FailSlowState, now_s: float) -> Iterator[Decision]:
    """Apply plans of Berth that wait, oldest first, and note when the breaker opens or closes."""
    if state.pool is None or not (state.mitigation.plans or state.fleet.is_breaker_open):
        return
    blocked = ""
    if state.pool.mitigation == "automatic":
        for open_plan in [plan for plan in state.mitigation.plans.values() if may_apply(plan)]:
            if waits_for_another(state, open_plan, now_s) or needs_operator(state, open_plan):
                continue
            if has_room(state, open_plan):
                gang = state.gangs.get(open_plan.job_id)
                yield Decision(
                    by_pool(state, open_plan, now_s), "", gang.traceparent if gang else ""
                )
            else:
                blocked = blocked or open_plan.plan_id
    if bool(blocked) != state.fleet.is_breaker_open:
        yield Decision(breaker_of(state, blocked))


def by_pool(state: FailSlowState, open_plan: OpenPlan, now_s: float) -> MitigationApplied:
    """Return that the pool applies the plan; one tenant's reports alone cordon some nodes only."""
    plan = open_plan.plan
    if plan.level != "migrate":
        return applied(open_plan, by="automatic")
    most = breaker(state).most(len(state.fleet.nodes))
    if may_cordon(state, open_plan.tenant, plan.node_ids, most, now_s):
        return applied(open_plan, by="automatic", cordons=True)
    return applied(open_plan, reason=ONE_TENANT, by="automatic")


def may_apply(open_plan: OpenPlan) -> bool:
    return open_plan.plan.actor == "berth" and not open_plan.is_applied


def waits_for_another(state: FailSlowState, open_plan: OpenPlan, now_s: float) -> bool:
    """Return whether another job's nodes are measured; slow jobs are not stopped all at once."""
    return open_plan.plan.level == "validate" and now_s < next_turn_s(state)


def needs_operator(state: FailSlowState, open_plan: OpenPlan) -> bool:
    """Return whether the plan follows from one measurement alone, which its tenant may disturb."""
    plan = open_plan.plan
    return plan.rule == MEASURED and not state.witnesses.agree(plan.node_ids)


def next_turn_s(state: FailSlowState) -> float:
    """Return the cluster time from which nodes may be measured without an operator.

    A measurement whose verdict does not come, as of a job that no quota admits, holds others up for
    `VERDICT_S` at most.
    """
    if any(gang.validates for gang in state.gangs.values()):
        return inf
    return max((own.applied_s + VERDICT_S for own in state.validations.values()), default=-inf)


def turn_due_s(state: FailSlowState) -> float | None:
    """Return when the next measurement that waits for its turn alone is due."""
    if state.pool is None or state.pool.mitigation != "automatic":
        return None
    plans = state.mitigation.plans.values()
    is_waiting = any(may_apply(plan) and plan.plan.level == "validate" for plan in plans)
    turn_s = next_turn_s(state)
    return turn_s if is_waiting and -inf < turn_s < inf else None


def has_room(state: FailSlowState, open_plan: OpenPlan) -> bool:
    """Return whether all nodes that the plan cordons may be out of use as well.

    To measure nodes takes none out of use, and is of no avail where its verdict could cordon none.
    A restart takes none out of use.
    """
    if open_plan.plan.level == "restart":
        return True
    out = state.fleet.out_of_use
    if open_plan.plan.level == "validate":
        return len(out) < breaker(state).most(len(state.fleet.nodes))
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
