"""Folds of faults and plans into the mitigation state of gangs and nodes."""

from __future__ import annotations

from services.failslow.core.mitigation.migration import FollowedMigration
from services.failslow.core.mitigation.mitigation_state import OpenPlan
from services.failslow.core.mitigation.plan import MitigationPlan, OpenFault
from services.failslow.core.state import FailSlowState
from shared.contracts.faults import FaultCleared, FaultDismissed, FaultSuspected
from shared.contracts.mitigation import MitigationApplied, MitigationCleared, MitigationPlanned
from shared.contracts.mitigation_account import (
    MitigationAccounted,
    MitigationCarriedOut,
    MitigationMeasured,
)
from shared.ledger.decider import Fact


def follow_fault(state: FailSlowState, event: FaultSuspected, fact: Fact) -> None:
    """Follow a fault of which the node is known: ranks are compared by their own work."""
    if not event.node_id:
        return
    attempt = int(event.fault_id.split("/")[1])
    fault = OpenFault(event.fault_id, event.node_id, event.cause, event.slowdown - 1)
    state.mitigation.open_fault(
        event.job_id, event.tenant, attempt, fault, state.cluster_s(fact.at)
    )


def end_fault(state: FailSlowState, event: FaultCleared | FaultDismissed, fact: Fact) -> None:
    now_s = state.cluster_s(fact.at)
    recovered = isinstance(event, FaultCleared) and event.reason == "recovered"
    if isinstance(event, FaultDismissed) and event.false_alarm:
        state.mitigation.take_back(event.node_id, event.fault_id, now_s)
    state.mitigation.close_fault(event.job_id, event.fault_id, now_s, ended=recovered)


def note_plan(state: FailSlowState, event: MitigationPlanned, fact: Fact) -> None:
    plan = MitigationPlan(
        event.level,
        event.actor,
        event.fault_ids,
        event.node_ids,
        event.expected_gain_s,
        event.cost_s,
        event.accumulated_loss_s,
        event.remaining,
        event.rule,
        evidence=event.evidence,
    )
    open_plan = OpenPlan(event.plan_id, event.job_id, event.tenant, event.attempt, plan)
    state.mitigation.note_plan(open_plan, state.cluster_s(fact.at))


def apply_plan(state: FailSlowState, event: MitigationApplied, fact: Fact) -> None:
    if (open_plan := state.mitigation.plans.get(event.plan_id)) is not None:
        open_plan.tries += 1
        open_plan.tried_s, open_plan.cordons = state.cluster_s(fact.at), event.cordons
        if event.cordons:
            state.fleet.order(event.plan_id, event.node_ids)


def end_plan(state: FailSlowState, event: MitigationCleared, fact: Fact) -> None:
    state.mitigation.end_plan(event.plan_id)
    state.fleet.end_order(event.plan_id)


def begin_migration(state: FailSlowState, event: MitigationCarriedOut, fact: Fact) -> None:
    state.mitigation.migrations[event.job_id] = FollowedMigration(
        event.plan_id,
        event.fault_id,
        event.tenant,
        event.attempt,
        event.slowdown,
        event.elapsed_s,
        event.lost_work_s,
        state.cluster_s(fact.at),
    )


def measure_migration(state: FailSlowState, event: MitigationMeasured, fact: Fact) -> None:
    """Learn the cost of migrations from one that was carried out."""
    state.mitigation.costs.note("migrate", event.cost_s)
    if (migration := state.mitigation.migrations.get(event.job_id)) is not None:
        migration.started_s = state.cluster_s(fact.at)
        migration.cost_s, migration.gpus = event.cost_s, event.gpus


def account_migration(state: FailSlowState, event: MitigationAccounted, fact: Fact) -> None:
    state.mitigation.migrations.pop(event.job_id, None)
