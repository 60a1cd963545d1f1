"""Nodes join, are lost, and are taken out of use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal

from services.placement.core.lifecycle import ends, gangs
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Machine, Node
from services.placement.core.pool.state import Pool
from shared.contracts.failures import Failure
from shared.contracts.nodes import (
    STILL_CORDONED,
    CordonNode,
    DrainNode,
    NodeCordoned,
    NodeHeldBack,
    NodeJoined,
    NodeLost,
    NodeUncordoned,
    UncordonNode,
)
from shared.contracts.reports import NodeRegistered
from shared.contracts.terms import IN_EXECUTOR
from shared.ledger.decider import Decision, Input, UnitStart, as_unit

Loss = Literal["silent", "left", "replaced", "declared"]
LEAVING = "node_draining"
LACKS_GPUS = "no_such_gpu"
REFUSES_ALL = frozenset({LEAVING, "prolog_failed", LACKS_GPUS})
"""Reasons of a refusal that say that the node takes no work at all."""
ENDS_AT_JOIN = frozenset({LEAVING, LACKS_GPUS})
"""Those that are over when the node joins anew."""


def register(
    pool: Pool, report: NodeRegistered, executor_id: str, now: int, cause: str
) -> Iterator[Decision]:
    """Add a node, or a new incarnation of one.

    With a proof that it is the same machine, the older incarnation has ended what it ran, and its
    GPUs are free at once. Without one, the registration waits until that holds nothing any more.
    Jobs leave the old one in units: it joins anew once the last of them is gone.
    """
    if is_outdated(pool, report):
        return
    registration = restate_registration(report, executor_id)
    old = pool.board.nodes.get(report.node_id)
    if old is not None and old.jobs and not is_same_machine(old, registration):
        yield from hold_back(pool, registration, cause)
        return
    if old is not None:
        yield from lose(pool, old, "replaced", now, cause)
        yield from release_all(pool, old, now, cause)
    yield from join(pool, registration, cause)


def is_outdated(pool: Pool, report: NodeRegistered) -> bool:
    """Return whether the registration is a late one, or a repeat.

    Executors of older versions count no generations: each of their registrations is a new one,
    unless the node has joined with a generation.
    """
    if report.generation:
        floor = 0 if report.backend in IN_EXECUTOR else pool.generation_floor
        return report.generation <= pool.generations.get(report.node_id, floor)
    old = pool.board.nodes.get(report.node_id)
    if report.backend not in IN_EXECUTOR:
        return True
    return old is not None and bool(old.machine.generation or old.incarnation == report.incarnation)


def is_same_machine(old: Node, registration: NodeJoined) -> bool:
    """Return whether the registration proves that nothing of the old incarnation lives.

    Executors of older versions proved nothing, and had ended all workers before they registered.
    """
    is_old_version = old.backend in IN_EXECUTOR and not old.machine.generation
    return is_old_version or old.machine.is_same(Machine.of(registration))


def hold_back(pool: Pool, registration: NodeJoined, cause: str) -> Iterator[Decision]:
    """Note a registration that has to wait, unless a later one waits already."""
    held = pool.held_back.get(registration.node_id)
    if held is None or held.generation < registration.generation:
        node_id = registration.node_id
        reason: Literal["machine_changed"] = "machine_changed"
        yield Decision(
            NodeHeldBack(node_id=node_id, reason=reason, registration=registration), cause
        )


def join(pool: Pool, registration: NodeJoined, cause: str) -> Iterator[Decision]:
    """Add the node; a cordon outlives its incarnations unless it ends with them.

    One for a GPU that failed ends with the boot of the machine, not of its agent alone.
    """
    node_id = registration.node_id
    is_faulty = pool.fault_boots.get(node_id) == registration.boot_id
    yield UnitStart(registration, cause)
    if node_id in pool.leaving and not is_faulty:
        yield Decision(NodeUncordoned(node_id=node_id), cause)
    elif node_id in pool.cordons:
        again = NodeCordoned(
            node_id=node_id,
            draining=pool.cordons[node_id],
            reason=STILL_CORDONED,
            until_joined=node_id in pool.leaving,
            fault_ids=pool.cordoned_for.get(node_id, ()) if is_faulty else (),
        )
        yield Decision(again, cause)


def restate_registration(report: NodeRegistered, executor_id: str) -> NodeJoined:
    return NodeJoined(executor_id=executor_id, **report.model_dump(exclude={"kind"}))


def leave(pool: Pool, node_id: str, incarnation: str, now: int, cause: str) -> Iterator[Decision]:
    """Lose a node whose agent reports that it is leaving."""
    node = pool.board.nodes.get(node_id)
    if node is not None and node.incarnation == incarnation:
        yield from lose(pool, node, "left", now, cause)


def lose(
    pool: Pool,
    node: Node,
    reason: Loss,
    now: int,
    cause: str,
    *,
    silent_ms: int = 0,
    powered_off: bool = False,
    detail: str = "",
) -> Iterator[Decision]:
    """Stop the gangs of a node; its own GPUs stay taken until nothing of it lives.

    A node that is lost already is lost again only by what proves that; of its gangs only those
    that were not stopped yet are.
    """
    job_ids, terms = list(node.jobs), _loss_terms(pool, node, reason, silent_ms)
    if node.lost_at is None or reason == "silent" or powered_off:
        event = NodeLost(
            node_id=node.node_id,
            incarnation=node.incarnation,
            reason=reason,
            silent_s=silent_ms / 1000,
            powered_off=powered_off,
            heard=reason == "declared" and not powered_off and node.silence is None,
            detail=detail,
        )
        yield UnitStart(event, cause)
    for job_id in job_ids:
        yield from as_unit(stop_gang(pool, pool.jobs[job_id], now, cause, terms))


def _loss_terms(pool: Pool, node: Node, reason: Loss, silent_ms: int) -> dict[str, float]:
    """Return how long a node was silent that is lost by it, and the bound, s."""
    if reason != "silent":
        return {}
    bound_s = math.ceil(pool.lost_after_ms(node)) / 1000
    return {"silent_s": silent_ms / 1000, "lost_after_s": bound_s}


def stop_gang(
    pool: Pool, job: Job, now: int, cause: str, terms: Mapping[str, float]
) -> Iterator[Decision]:
    """Stop the gang of a lost node, unless it stops already."""
    if job.phase in ("placed", "running"):
        yield gangs.lose_gang(pool, job, now, cause, terms)


def release_all(pool: Pool, node: Node, now: int, cause: str) -> Iterator[Decision]:
    """Release what jobs hold on a node of which nothing lives any more."""
    for job_id in list(node.jobs):
        job = pool.jobs[job_id]
        yield from as_unit(stop_gang(pool, job, now, cause, {}))
        on_node = [n for n, held in job.allocations.items() if held.slot.node_id == node.node_id]
        for allocation_id in on_node:
            yield UnitStart(
                *gangs.release_allocation(job, allocation_id, "lease_over", None, cause)
            )
        yield from ends.conclude(pool, job, now, cause)


def cordon_refusing(pool: Pool, node_id: str, failure: Failure, cause: str) -> Iterator[Decision]:
    """Cordon a node that refuses all work, or it would attract and refuse job after job.

    A node that leaves is schedulable again when it joins anew, and so is one with fewer GPUs than
    it had registered, but a virtual one, which does not join anew for that; one whose prolog fails
    stays cordoned until an operator has looked at it. That replaces a cordon that ends earlier: one
    of its GPUs' problems, or at the next join.
    """
    node = pool.board.nodes.get(node_id)
    if failure.reason == LACKS_GPUS and (node is None or node.backend in IN_EXECUTOR):
        return
    until_joined = failure.reason in ENDS_AT_JOIN
    ends_earlier = node_id in pool.leaving and (node_id in pool.cordoned_for or not until_joined)
    if failure.reason in REFUSES_ALL and (ends_earlier or node_id not in pool.cordons):
        reason = f"{failure.reason}: {failure.detail}"
        event = NodeCordoned(node_id=node_id, reason=reason, until_joined=until_joined)
        yield UnitStart(event, cause)


def change_cordon(
    pool: Pool, message: CordonNode | DrainNode | UncordonNode, item: Input
) -> Iterator[Decision]:
    """Set or lift the cordon; no decision where the node is so already.

    An operator's cordon replaces one that would end by itself.
    """
    node_id, draining = message.node_id, pool.cordons.get(message.node_id)
    is_temporary = node_id in pool.leaving or node_id in pool.cordoned_for
    match message:
        case UncordonNode() if draining is not None:
            yield item.decision(NodeUncordoned(node_id=node_id))
        case CordonNode(reason=reason) if draining is None or is_temporary:
            draining = bool(draining)
            yield item.decision(NodeCordoned(node_id=node_id, draining=draining, reason=reason))
        case DrainNode(reason=reason) if not draining:
            yield item.decision(NodeCordoned(node_id=node_id, draining=True, reason=reason))
