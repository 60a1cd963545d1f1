"""Jobs that are slow as a whole with no known part: their nodes are measured, once per attempt.

Neither peers nor phases say then which node or link it is, and a measurement does, at the cost of a
stop. So it is due when the slowdown has cost as much (break even), as a plan of the level
`validate`: it waits for an operator, or is applied by the pool within the breaker.

It stops the job that it is for and no other one, so a job that may not be stopped has none; and a
tenant has one at a time, as its reports alone say that a job of it is slow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from services.failslow.core.mitigation.mitigation_state import MitigationState
from services.failslow.core.mitigation.policy import lost_share
from services.failslow.core.state import FailSlowState, GangState
from shared.contracts.mitigation import MitigationPlanned
from shared.contracts.validation import MOST_NODES, VALIDATIONS_FROM
from shared.ledger.decider import Decision

MEASURED_S = 60.0
"""Cluster s that a measurement takes besides the stop and start of the job."""
LEAST_NODES = 3
"""Of fewer none can be named."""
VERDICT_S = 600.0
"""Cluster s after which a measurement of which no verdict came holds up no other one."""
RULE = "break even: the cause is unclear"


@dataclass(frozen=True, slots=True)
class MeasuredNodes:
    """The nodes of a gang that can be measured, and the whole GPUs that it has on each."""

    node_ids: tuple[str, ...]
    gpus: int


def layout_of(gang: GangState) -> MeasuredNodes | None:
    """Return the nodes of a gang; None where they are too few, too many, or not used alike."""
    counts = Counter(worker.node_id for worker in gang.workers.values())
    per_node = gang.gpus / len(counts) if counts else 0.0
    is_alike = len(set(counts.values())) == 1 and per_node == int(per_node)
    if not (is_alike and LEAST_NODES <= len(counts) <= MOST_NODES):
        return None
    return MeasuredNodes(tuple(counts), int(per_node))


def cost_s(mitigation: MitigationState) -> float:
    """Return what a measurement costs a job: it stops, and starts anew."""
    return mitigation.costs.of("migrate").cost_s + MEASURED_S


def due_s(state: FailSlowState, job_id: str) -> float | None:
    """Return the cluster time at which measuring the nodes of a job is worth it; None: never."""
    gang = state.gangs.get(job_id)
    unclear = gang.unclear if gang else None
    if gang is None or unclear is None or unclear.is_planned or gang.validates:
        return None
    turn_s = tenants_turn_s(state, gang.tenant)
    if not gang.preemptible or turn_s == inf:
        return None
    if len(gang.open) > 1 or layout_of(gang) is None:
        return None  # A worker that is slow by itself explains more.
    return max(turn_s, unclear.since_s + cost_s(state.mitigation) / lost_share(unclear.slowdown))


def tenants_turn_s(state: FailSlowState, tenant: str) -> float:
    """Return the cluster time from which a job of the tenant may be measured; inf: not known."""
    plans = state.mitigation.plans.values()
    if any(plan.tenant == tenant and plan.plan.level == "validate" for plan in plans):
        return inf
    own = [one.applied_s for one in state.validations.values() if one.tenant == tenant]
    return max(own, default=-inf) + VERDICT_S


def first_due_s(state: FailSlowState) -> float | None:
    if not can_validate(state):
        return None
    times = (due_s(state, job_id) for job_id, gang in state.gangs.items() if gang.unclear)
    return min((time_s for time_s in times if time_s is not None), default=None)


def can_validate(state: FailSlowState) -> bool:
    pool = state.pool
    return pool is not None and pool.mitigation != "off" and pool.release >= VALIDATIONS_FROM


def plan_validations(state: FailSlowState, now: int) -> Iterator[Decision]:
    """Plan a measurement for each job of which the loss justifies it by now."""
    if not can_validate(state):
        return
    now_s = state.cluster_s(now)
    for job_id, gang in list(state.gangs.items()):
        at_s = due_s(state, job_id) if gang.unclear else None
        if at_s is not None and at_s <= now_s:
            yield Decision(plan_of(state, job_id, gang, now_s), "", gang.traceparent)


def plan_of(state: FailSlowState, job_id: str, gang: GangState, now_s: float) -> MitigationPlanned:
    unclear, layout = gang.unclear, layout_of(gang)
    assert unclear is not None and layout is not None, "a plan that is due has both"
    lost_s = (now_s - unclear.since_s) * lost_share(unclear.slowdown)
    return MitigationPlanned(
        plan_id=f"{job_id}/{gang.attempt}/validate/{state.mitigation.plans_so_far + 1}",
        job_id=job_id,
        tenant=gang.tenant,
        attempt=gang.attempt,
        level="validate",
        actor="berth",
        node_ids=layout.node_ids,
        fault_ids=(unclear.fault_id,),
        expected_gain_s=0.0,
        cost_s=cost_s(state.mitigation),
        accumulated_loss_s=lost_s,
        remaining=unclear.slowdown,
        rule=RULE,
        evidence=(
            f"the cause is {unclear.cause}, and no worker is slower than its peers",
            "the measurement stops this job, which starts again, and no other one",
        ),
    )
