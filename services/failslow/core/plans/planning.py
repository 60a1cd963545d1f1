"""Decisions about mitigation: plans that are due, their approval and their end, and health."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Literal

from services.failslow.core.mitigation.mitigation_state import OpenPlan
from services.failslow.core.plans.adapting import first_adaptation_s
from services.failslow.core.plans.measuring import first_due_s
from services.failslow.core.state import FailSlowState
from shared.contracts.mitigation import (
    GPU_HEALTH_FROM,
    ApproveMitigation,
    MitigationApplied,
    MitigationCleared,
    MitigationPlanned,
    MitigationTurnedDown,
    NodeHealthScored,
)
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input

TURNED_DOWN = "turned_down"


def due_at(state: FailSlowState) -> int | None:
    """Return the ms when the next plan is due, None without any or where none is made."""
    if not makes_plans(state):
        return None
    adapting = first_adaptation_s(state)
    due = (first_due_s(state), adapting, *(one.due_s for one in state.mitigation.episodes.values()))
    first_s = min((due_s for due_s in due if due_s is not None), default=None)
    return None if first_s is None else ledger_ms(state, first_s)


def ledger_ms(state: FailSlowState, cluster_s: float) -> int:
    """Return the first ms of the ledger at which a cluster time has come."""
    return ceil(cluster_s * 1000 / (state.pool.time_scale if state.pool else 1.0))


def plan_due(state: FailSlowState, now: int) -> Iterator[Decision]:
    """Plan for each gang of which the loss justifies a level by now."""
    if not makes_plans(state):
        return
    now_s = state.cluster_s(now)
    for job_id, episode in list(state.mitigation.episodes.items()):
        if episode.due_s is None or episode.due_s > now_s:
            continue
        plan, gang = state.mitigation.due_plan(job_id), state.gangs.get(job_id)
        if plan is None:
            continue
        event = MitigationPlanned(
            plan_id=f"{job_id}/{episode.attempt}/{plan.level}/{state.mitigation.plans_so_far + 1}",
            job_id=job_id,
            tenant=episode.tenant,
            attempt=episode.attempt,
            level=plan.level,
            actor=plan.actor,
            node_ids=plan.node_ids,
            fault_ids=plan.fault_ids,
            expected_gain_s=plan.expected_gain_s,
            cost_s=plan.cost_s,
            accumulated_loss_s=plan.accumulated_loss_s,
            remaining=plan.remaining,
            rule=plan.rule,
            evidence=plan.evidence,
            microbatches=plan.microbatches,
        )
        yield Decision(event, "", gang.traceparent if gang else "")


def makes_plans(state: FailSlowState) -> bool:
    return state.pool is None or state.pool.mitigation != "off"


def end_plans(
    state: FailSlowState, job_id: str, reason: str, cause: str = ""
) -> Iterator[Decision]:
    """End the plans of a gang without open faults."""
    if job_id in state.mitigation.episodes:
        return
    for open_plan in [plan for plan in state.mitigation.plans.values() if plan.job_id == job_id]:
        yield Decision(cleared(open_plan, reason), cause)


def end_turned_down(state: FailSlowState, item: Input) -> Iterator[Decision]:
    """End a plan that placement does not carry out; another level may follow.

    A migration that waits for room stays, and so does one of which placement has dropped the wait.
    """
    match item.message:
        case MitigationTurnedDown(waits=False, plan_id=plan_id, reason=reason) if reason != "over":
            if (open_plan := state.mitigation.plans.get(plan_id)) is not None:
                yield item.decision(cleared(open_plan, TURNED_DOWN))


def cleared(open_plan: OpenPlan, reason: str) -> MitigationCleared:
    return MitigationCleared(
        plan_id=open_plan.plan_id, job_id=open_plan.job_id, tenant=open_plan.tenant, reason=reason
    )


def approve(state: FailSlowState, item: Input, command: ApproveMitigation) -> Iterator[Decision]:
    """Accept and apply the plan, or refuse with a reason code."""
    open_plan = state.mitigation.plans.get(command.plan_id)
    refusal = refusal_of(state, open_plan)
    if refusal or open_plan is None:
        detail = f"plan_id: {command.plan_id!r}"
        yield refuse_command(item, command.plan_id, refusal, detail)
        return
    yield accept_command(item, command.plan_id)
    yield item.decision(applied(open_plan, reason=command.reason))
    fault = state.faults.get(next(iter(open_plan.plan.fault_ids), ""))
    kind = fault.kind if fault is not None else "worker"
    yield item.decision(state.strictness.adjusted(state.name, kind, false_alarm=False))


def applied(
    open_plan: OpenPlan,
    *,
    reason: str = "",
    by: Literal["operator", "automatic"] = "operator",
    cordons: bool = False,
) -> MitigationApplied:
    """Return that the plan is applied, by an operator or by the pool, which may also cordon."""
    return MitigationApplied(
        plan_id=open_plan.plan_id,
        job_id=open_plan.job_id,
        tenant=open_plan.tenant,
        attempt=open_plan.attempt,
        level=open_plan.plan.level,
        actor=open_plan.plan.actor,
        node_ids=open_plan.plan.node_ids,
        reason=reason,
        fault_ids=open_plan.plan.fault_ids,
        by=by,
        cordons=cordons,
    )


def refusal_of(state: FailSlowState, open_plan: OpenPlan | None) -> str:
    if state.pool is None:
        return "unknown_pool"
    if open_plan is None:
        return "unknown_plan"
    return "already_applied" if open_plan.is_applied else ""


def score_node(state: FailSlowState, node_id: str, fault_id: str, now: int) -> Iterator[Decision]:
    """Publish the health of a node, and of the GPU that it changed, after a fact about it.

    Earlier releases would take the score of a GPU for that of its node.
    """
    scores_gpus = state.pool is not None and state.pool.release >= GPU_HEALTH_FROM
    for gpu, part in state.mitigation.parts_of(node_id):
        if gpu is not None and not (scores_gpus and part.changed_by == fault_id):
            continue
        event = NodeHealthScored(
            node_id=node_id,
            score=part.score(state.cluster_s(now)),
            faults=part.faults,
            false_alarms=part.false_alarms,
            repairs=part.repairs,
            fault_id=fault_id,
            gpu=gpu,
        )
        yield Decision(event)
