"""Nodes join, are lost, and are taken out of use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from services.placement.core.lifecycle import gangs
from services.placement.core.pool.board import Node
from services.placement.core.pool.job import Job
from services.placement.core.pool.state import Pool
from shared.contracts.nodes import (
    CordonNode,
    DrainNode,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeUncordoned,
    UncordonNode,
)
from shared.contracts.reports import NodeRegistered, NodesSilent
from shared.ledger.decider import Decision, Input, UnitStart, WakeStart, as_unit


def register(
    pool: Pool, report: NodeRegistered, executor_id: str, now: int, cause: str
) -> Iterator[Decision]:
    """Add a node. A new incarnation has ended what the old one ran: its GPUs are free at once.

    Jobs leave the old one in units: it joins anew once the last of them is gone.
    """
    old = pool.board.nodes.get(report.node_id)
    if old is not None and old.incarnation == report.incarnation:
        return
    if old is not None:
        yield from lose(pool, old, "replaced", 0.0, cause)
        yield from release_all(pool, old, now, cause)
    yield Decision(joined(report, executor_id), cause)
    if report.node_id in pool.cordons:
        draining = pool.cordons[report.node_id]
        again = NodeCordoned(node_id=report.node_id, draining=draining, reason="still cordoned")
        yield Decision(again, cause)


def joined(report: NodeRegistered, executor_id: str) -> NodeJoined:
    return NodeJoined(
        node_id=report.node_id,
        incarnation=report.incarnation,
        executor_id=executor_id,
        backend=report.backend,
        gpu_type=report.gpu_type,
        gpus=report.gpus,
        cpus=report.cpus,
        mem_gib=report.mem_gib,
        rack=report.rack,
        labels=report.labels,
    )


def leave(pool: Pool, node_id: str, incarnation: str, cause: str) -> Iterator[Decision]:
    """Lose a node whose agent reports that it is leaving."""
    node = pool.board.nodes.get(node_id)
    if node is not None and node.incarnation == incarnation:
        yield from lose(pool, node, "left", 0.0, cause)


def lose_silent(pool: Pool, message: NodesSilent, cause: str) -> Iterator[Decision]:
    """Lose the nodes that sent no heartbeat for their lease."""
    for node_id, incarnation in sorted(message.nodes.items()):
        node = pool.board.nodes.get(node_id)
        if node is not None and node.incarnation == incarnation:
            yield from lose(pool, node, "silent", message.silent_s, cause)


def lose(
    pool: Pool,
    node: Node,
    reason: Literal["silent", "left", "replaced"],
    silent_s: float,
    cause: str,
) -> Iterator[Decision]:
    """Stop its gangs' workers on other nodes; its own GPUs stay taken until the lease is over.

    Of a node that is lost already, only gangs that were not stopped yet are.
    """
    job_ids = list(node.jobs)
    if node.lost_at is None:
        event = NodeLost(
            node_id=node.node_id, incarnation=node.incarnation, reason=reason, silent_s=silent_s
        )
        yield UnitStart(event, cause)
    for job_id in job_ids:
        yield from as_unit(stop(pool.jobs[job_id], cause))


def stop(job: Job, cause: str) -> Iterator[Decision]:
    """Stop the gang of a lost node, unless it stops already."""
    if job.phase in ("placed", "running"):
        yield gangs.preempt_job(job, "node_lost", "", 0.0, cause)


def release_all(pool: Pool, node: Node, now: int, cause: str) -> Iterator[Decision]:
    """Release what jobs hold on a node whose lease is over or whose agent is new."""
    for job_id in list(node.jobs):
        job = pool.jobs[job_id]
        yield from as_unit(stop(job, cause))
        on_node = [n for n, held in job.allocations.items() if held.slot.node_id == node.node_id]
        for allocation_id in on_node:
            yield UnitStart(
                *gangs.release_allocation(job, allocation_id, "lease_over", None, cause)
            )
        yield from gangs.conclude(job, now, cause)


def end_leases(pool: Pool, now: int) -> Iterator[Decision]:
    """Release the GPUs of the node lost longest ago; `next_wake` stays due until none is left."""
    for node_id, lost_at in pool.lost.items():
        if now >= lost_at + pool.lease_ms:
            for decision in release_all(pool, pool.board.nodes[node_id], now, ""):
                yield WakeStart(*decision) if isinstance(decision, UnitStart) else decision
        return


def lease_end(pool: Pool) -> int | None:
    """Return the ms when the first lease of a lost node is over."""
    for lost_at in pool.lost.values():
        return lost_at + pool.lease_ms
    return None


def change_cordon(
    pool: Pool, message: CordonNode | DrainNode | UncordonNode, item: Input
) -> Iterator[Decision]:
    """Set or lift the cordon; no decision where the node is as asked for already."""
    node_id, draining = message.node_id, pool.cordons.get(message.node_id)
    match message:
        case UncordonNode() if draining is not None:
            yield item.decision(NodeUncordoned(node_id=node_id))
        case CordonNode(reason=reason) if draining is None:
            yield item.decision(NodeCordoned(node_id=node_id, reason=reason))
        case DrainNode(reason=reason) if not draining:
            yield item.decision(NodeCordoned(node_id=node_id, draining=True, reason=reason))
