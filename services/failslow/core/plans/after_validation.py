"""Consequences of the verdict of a validation: the health of nodes, and leaving a slow part.

A measured deviation is a verified fault of its nodes, and a node that is as fast as its like after
faults is repaired as far as one moment shows. Of a validation that fail-slow began itself
the job leaves these nodes by a plan, if it is there again; where it is not, the pool's setting
`automatic` cordons them, so that it does not return there. Without an operator both need that a
measurement for another tenant, or by an operator, has said the same (`witnesses.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.failslow.core.plans.automation import MEASURED, breaker
from services.failslow.core.plans.planning import score_node
from services.failslow.core.state import FailSlowState, GangState, OwnValidation
from shared.contracts.mitigation import MitigationApplied, MitigationPlanned
from shared.contracts.validation import NodesValidated
from shared.ledger.decider import Decision


def follow_verdict(
    state: FailSlowState,
    event: NodesValidated,
    own: OwnValidation | None,
    well: Sequence[str],
    now: int,
) -> Iterator[Decision]:
    """Follow the verdict of a validation, after it was noted.

    `well` are the nodes of which it has lowered the burden.
    """
    for node_id in (*event.suspect_node_ids, *well):
        yield from score_node(state, node_id, event.job_id, now)
    if own is None or not event.suspect_node_ids or state.pool is None:
        return
    gang, left = state.gangs.get(own.job_id), nodes_to_leave(event)
    nodes = {worker.node_id for worker in gang.workers.values()} if gang else set()
    if gang is not None and nodes.intersection(left):
        there = tuple(node_id for node_id in left if node_id in nodes)
        yield Decision(leaving(state, event, own, gang, there), event.job_id, gang.traceparent)
    elif state.pool.mitigation == "automatic":
        fleet = state.fleet
        agreed = [node_id for node_id in left if state.witnesses.agree([node_id])]
        allowed = breaker(state).allowed(agreed, len(fleet.nodes), fleet.out_of_use)
        if allowed:
            yield Decision(cordoning(event, own, allowed), event.job_id)


def nodes_to_leave(event: NodesValidated) -> tuple[str, ...]:
    """Return the nodes of the part that deviates; of a link one end is enough."""
    return event.suspect_node_ids[:1] if event.part == "link" else event.suspect_node_ids


def leaving(
    state: FailSlowState,
    event: NodesValidated,
    own: OwnValidation,
    gang: GangState,
    nodes: tuple[str, ...],
) -> MitigationPlanned:
    """Return the plan to leave the nodes of the part that deviates."""
    return MitigationPlanned(
        plan_id=f"{own.job_id}/{gang.attempt}/migrate/{state.mitigation.plans_so_far + 1}",
        job_id=own.job_id,
        tenant=own.tenant,
        attempt=gang.attempt,
        level="migrate",
        actor="berth",
        node_ids=nodes,
        fault_ids=(own.fault_id,),
        expected_gain_s=0.0,
        cost_s=state.mitigation.costs.of("migrate").cost_s,
        accumulated_loss_s=0.0,
        remaining=0.0,
        rule=MEASURED,
        evidence=event.evidence[:4],
    )


def cordoning(
    event: NodesValidated, own: OwnValidation, nodes: tuple[str, ...]
) -> MitigationApplied:
    """Return that the plan to measure leads to a cordon of these nodes."""
    return MitigationApplied(
        plan_id=own.plan_id,
        job_id=own.job_id,
        tenant=own.tenant,
        attempt=own.attempt,
        level="validate",
        actor="berth",
        node_ids=nodes,
        reason=event.evidence[0] if event.evidence else "",
        fault_ids=(own.fault_id,),
        by="automatic",
        cordons=True,
    )
