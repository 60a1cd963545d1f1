"""Nodes join, are lost, and are taken out of use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from services.placement.core.lifecycle import gangs
from services.placement.core.pool.board import Node
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
from shared.ledger.decider import Decision, Input

RELEASES_PER_STEP = 1000
"""A record of the ledger has its bounds; the next step goes on."""


def register(
    pool: Pool, report: NodeRegistered, executor_id: str, now: int, cause: str
) -> Iterator[Decision]:
    """Add a node. A new incarnation has ended what the old one ran: its GPUs are free at once."""
    old = pool.board.nodes.get(report.node_id)
    if old is not None and old.incarnation == report.incarnation:
        return
    if old is not None:
        if old.lost_at is None:
            yield from lose(pool, old, "replaced", 0.0, cause)
        yield from release_all(pool, report.node_id, now, cause)
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
    if node is not None and node.incarnation == incarnation and node.lost_at is None:
        yield from lose(pool, node, "left", 0.0, cause)


def lose_silent(pool: Pool, message: NodesSilent, cause: str) -> Iterator[Decision]:
    """Lose the nodes that sent no heartbeat for their lease."""
    for node_id, incarnation in sorted(message.nodes.items()):
        node = pool.board.nodes.get(node_id)
        if node is not None and node.incarnation == incarnation and node.lost_at is None:
            yield from lose(pool, node, "silent", message.silent_s, cause)


def lose(
    pool: Pool,
    node: Node,
    reason: Literal["silent", "left", "replaced"],
    silent_s: float,
    cause: str,
) -> Iterator[Decision]:
    """Stop its gangs' workers on other nodes; its own GPUs stay taken until the lease is over."""
    job_ids = list(node.jobs)
    yield Decision(
        NodeLost(
            node_id=node.node_id, incarnation=node.incarnation, reason=reason, silent_s=silent_s
        ),
        cause,
    )
    for job_id in job_ids:
        job = pool.jobs[job_id]
        if job.phase in ("placed", "running"):
            yield gangs.preempted(job, "node_lost", "", 0.0, cause)


def release_all(
    pool: Pool, node_id: str, now: int, cause: str, most: int = 1 << 30
) -> Iterator[Decision]:
    """Release up to `most` allocations on a node whose lease is over or whose agent is new."""
    node = pool.board.nodes.get(node_id)
    for job_id in list(node.jobs) if node else ():
        job = pool.jobs[job_id]
        on_node = [name for name, held in job.allocations.items() if held.slot.node_id == node_id]
        for allocation_id in on_node[:most]:
            yield gangs.release(job, allocation_id, "lease_over", None, cause)
        most -= len(on_node)
        yield from gangs.conclude(job, now, cause)
        if most <= 0:
            return


def end_leases(pool: Pool, now: int) -> Iterator[Decision]:
    """Release the GPUs of the node lost longest ago; `next_wake` stays due until none is left."""
    for node_id, lost_at in pool.lost.items():
        if now >= lost_at + pool.lease_ms:
            yield from release_all(pool, node_id, now, "", RELEASES_PER_STEP)
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
