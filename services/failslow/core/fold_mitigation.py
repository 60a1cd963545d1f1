"""Folds of faults and plans into the mitigation state of gangs and nodes."""

from __future__ import annotations

from dataclasses import replace

from services.failslow.core.health.gpu_problems import SEVERITY, fault_id_of
from services.failslow.core.health.score import PartHealth
from services.failslow.core.mitigation.adaptation import adapted_schedule
from services.failslow.core.mitigation.migration import FollowedMigration, level_of
from services.failslow.core.mitigation.mitigation_state import OpenPlan
from services.failslow.core.mitigation.plan import MitigationPlan, OpenFault
from services.failslow.core.mitigation.redistribute import Division
from services.failslow.core.plans.confirmation import is_confirmed
from services.failslow.core.plans.measuring import LEAST_NODES, layout_of
from services.failslow.core.state import (
    VALIDATIONS_KEPT,
    FailSlowState,
    GangState,
    OwnValidation,
    Unclear,
)
from services.failslow.core.witnesses import OPERATOR
from shared.contracts.faults import FaultCleared, FaultDismissed, FaultSuspected
from shared.contracts.identity import derive_job_id
from shared.contracts.mitigation import (
    RESTARTS_FROM,
    MitigationApplied,
    MitigationCleared,
    MitigationExpected,
    MitigationPlanned,
)
from shared.contracts.mitigation_account import (
    MitigationAccounted,
    MitigationCarriedOut,
    MitigationMeasured,
)
from shared.contracts.node_problems import NodeGpusNoted
from shared.contracts.validation import NodesValidated
from shared.ledger.decider import Fact

JOB_ENDED = "job_ended"


def follow_fault(state: FailSlowState, event: FaultSuspected, fact: Fact) -> None:
    """Follow a fault of which the node is known: ranks are compared by their own work."""
    if not event.node_id:
        return
    attempt = int(event.fault_id.split("/")[1])
    fault = OpenFault(event.fault_id, event.node_id, event.cause, event.slowdown - 1)
    own = event.replicas
    division = Division.of(own.microbatch_s, own.microbatches) if own else None
    now_s = state.cluster_s(fact.at)
    state.mitigation.open_fault(
        event.job_id, event.tenant, attempt, fault, now_s, division, event.gpu
    )


def end_fault(state: FailSlowState, event: FaultCleared | FaultDismissed, fact: Fact) -> None:
    now_s = state.cluster_s(fact.at)
    recovered = isinstance(event, FaultCleared) and event.reason == "recovered"
    if isinstance(event, FaultDismissed) and event.false_alarm:
        state.mitigation.take_back(event.node_id, event.fault_id, now_s)
    state.mitigation.close_fault(event.job_id, event.fault_id, now_s, ended=recovered)


def note_unclear(state: FailSlowState, gang: GangState, event: FaultSuspected, fact: Fact) -> None:
    """Follow a job that is slow as a whole, and of which computing is not known to be the cause."""
    if event.cause != "compute" and event.slowdown > 1:
        since_s = state.cluster_s(fact.at)
        schedule = adapted_schedule(event.pipeline) if event.pipeline else None
        slowdown = event.slowdown - 1
        gang.unclear = Unclear(event.fault_id, event.cause, slowdown, since_s, schedule=schedule)


def note_validated(state: FailSlowState, event: NodesValidated, fact: Fact) -> None:
    """Remember what was measured to deviate as a fault of its nodes."""
    own, now_s = state.validations.pop(event.job_id, None), state.cluster_s(fact.at)
    suspects = event.suspect_node_ids
    quiet = {*suspects, *event.silent_node_ids}
    tenant = own.tenant if own else OPERATOR
    state.witnesses.note(suspects, tenant, now_s)
    if len(event.node_ids) - len(event.silent_node_ids) >= LEAST_NODES:
        state.witnesses.clear(node_id for node_id in event.node_ids if node_id not in quiet)
    worst = max((part.ratio for part in event.measured if part.node_id in suspects), default=1.0)
    for node_id in suspects:
        health = state.mitigation.health.setdefault(node_id, PartHealth())
        health.note_fault(event.job_id, max(0.0, worst - 1), now_s, tenant)
    for node_id in well_after_faults(state, event):
        state.mitigation.note_well(node_id, event.job_id, now_s)


def note_gpus(state: FailSlowState, event: NodeGpusNoted, fact: Fact) -> None:
    """Remember a problem of GPUs as a fault of the node and of them, once per incarnation."""
    state.gpu_problems.note(event)
    if event.present:
        now_s = state.cluster_s(fact.at)
        for part in state.mitigation.parts_with(event.node_id, event.gpus):
            part.note_fault(fault_id_of(event), SEVERITY[event.problem], now_s)


def well_after_faults(state: FailSlowState, event: NodesValidated) -> list[str]:
    """Return the measured nodes that do not deviate, of those that faults are remembered of."""
    measured = [node_id for node_id in event.node_ids if node_id not in event.silent_node_ids]
    if len(measured) < LEAST_NODES:
        return []
    health, suspects = state.mitigation.health, event.suspect_node_ids
    return [
        node_id
        for node_id in measured
        if node_id not in suspects and node_id in health and health[node_id].burden > 0
    ]


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
        microbatches=event.microbatches,
    )
    open_plan = OpenPlan(event.plan_id, event.job_id, event.tenant, event.attempt, plan)
    state.mitigation.note_plan(open_plan, state.cluster_s(fact.at))
    gang = state.gangs.get(event.job_id)
    if gang is not None and gang.unclear is not None:
        gang.unclear.is_planned |= event.level == "validate"
        gang.unclear.is_advised |= event.level == "adapt_schedule"
        gang.unclear.is_stated = False


def note_expected(state: FailSlowState, event: MitigationExpected, fact: Fact) -> None:
    """Note that the plan that is due next is stated."""
    episode, gang = state.mitigation.episodes.get(event.job_id), state.gangs.get(event.job_id)
    if episode is not None:
        episode.is_stated = True
    if gang is not None and gang.unclear is not None:
        gang.unclear.is_stated = True


def apply_plan(state: FailSlowState, event: MitigationApplied, fact: Fact) -> None:
    if (open_plan := state.mitigation.plans.get(event.plan_id)) is not None:
        open_plan.tries += 1
        open_plan.tried_s, open_plan.cordons = state.cluster_s(fact.at), event.cordons
        open_plan.by = event.by
        if event.level == "migrate" and open_plan.tries > 1 and may_restart(state, event.job_id):
            state.mitigation.offer_restart(event.job_id, open_plan.tried_s)
    if event.cordons:
        for node_id in event.node_ids:
            is_known = is_confirmed(state, node_id, event.tenant, state.cluster_s(fact.at))
            alone = "" if is_known else event.tenant
            state.fleet.order(event.plan_id, (node_id,), alone)
    elif event.level == "validate":
        begin_validation(state, event, fact)


def may_restart(state: FailSlowState, job_id: str) -> bool:
    """Return whether a job that found no room may be restarted where it is, in this release."""
    gang = state.gangs.get(job_id)
    is_read = state.pool is not None and state.pool.release >= RESTARTS_FROM
    return is_read and gang is not None and gang.preemptible


def begin_validation(state: FailSlowState, event: MitigationApplied, fact: Fact) -> None:
    """Expect the verdict of a validation, by the id that its job will have."""
    gang = state.gangs.get(event.job_id)
    layout = layout_of(gang) if gang else None
    if layout is None or state.pool is None:
        return
    job_id = derive_job_id(event.tenant, state.pool.pool, event.plan_id)
    state.validations[job_id] = OwnValidation(
        event.plan_id,
        event.job_id,
        event.tenant,
        event.attempt,
        next(iter(event.fault_ids), ""),
        layout.node_ids,
        layout.gpus,
        state.cluster_s(fact.at),
    )
    while len(state.validations) > VALIDATIONS_KEPT:
        del state.validations[next(iter(state.validations))]


def end_plan(state: FailSlowState, event: MitigationCleared, fact: Fact) -> None:
    state.mitigation.end_plan(event.plan_id)
    state.fleet.end_order(event.plan_id)
    if event.reason == JOB_ENDED:  # It has perhaps stopped for the measurement.
        return
    for job_id, own in state.validations.items():
        if own.plan_id == event.plan_id:
            state.validations[job_id] = replace(own, is_over=True)


def begin_migration(state: FailSlowState, event: MitigationCarriedOut, fact: Fact) -> None:
    followed = state.mitigation.migrations[event.job_id] = FollowedMigration(
        event.plan_id,
        event.fault_id,
        event.tenant,
        event.attempt,
        event.slowdown,
        event.elapsed_s,
        event.lost_work_s,
        state.cluster_s(fact.at),
    )
    if followed.level == "restart":
        state.mitigation.note_restart(event.job_id)


def measure_migration(state: FailSlowState, event: MitigationMeasured, fact: Fact) -> None:
    """Learn the cost of a level from a migration or restart that was carried out."""
    now_s = state.cluster_s(fact.at)
    state.mitigation.costs.note(level_of(event.plan_id), event.cost_s)
    if (migration := state.mitigation.migrations.get(event.job_id)) is not None:
        migration.started_s = now_s
        migration.cost_s, migration.gpus = event.cost_s, event.gpus
        state.mitigation.deficits.charge(event.job_id, event.cost_s, migration.slowdown, now_s)


def account_migration(state: FailSlowState, event: MitigationAccounted, fact: Fact) -> None:
    state.mitigation.migrations.pop(event.job_id, None)
