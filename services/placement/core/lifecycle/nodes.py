"""Nodes come, go, and are taken out of use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from services.placement.core.lifecycle import gangs
from services.placement.core.moves.migrate import drained
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
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input

RELEASES_PER_STEP = 1000
"""A record of the ledger has its bounds; the next step goes on."""

NodeCommand = CordonNode | DrainNode | UncordonNode


def registered(
    pool: Pool, report: NodeRegistered, executor_id: str, now: int, cause: str
) -> Iterator[Decision]:
    """A new incarnation has ended what the old one ran, so its GPUs are free at once."""
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


def leaving(pool: Pool, node_id: str, incarnation: str, cause: str) -> Iterator[Decision]:
    node = pool.board.nodes.get(node_id)
    if node is not None and node.incarnation == incarnation and node.lost_at is None:
        yield from lose(pool, node, "left", 0.0, cause)


def silent(pool: Pool, message: NodesSilent, cause: str) -> Iterator[Decision]:
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
    """Workers of its gangs on other nodes stop; what it held itself waits for the lease."""
    holders = list(node.jobs)
    yield Decision(
        NodeLost(
            node_id=node.node_id, incarnation=node.incarnation, reason=reason, silent_s=silent_s
        ),
        cause,
    )
    yield from move_away(pool, holders, "node_lost", cause)


def move_away(
    pool: Pool, job_ids: list[str], reason: gangs.Preemption, cause: str
) -> Iterator[Decision]:
    for job_id in job_ids:
        job = pool.jobs[job_id]
        if job.phase in ("placed", "running"):
            yield gangs.preempted(job, reason, "", 0.0, cause)


def release_all(
    pool: Pool, node_id: str, now: int, cause: str, most: int = 1 << 30
) -> Iterator[Decision]:
    """The lease of a lost node is over, or its executor is a new one: its workers are gone."""
    node = pool.board.nodes.get(node_id)
    for job_id in list(node.jobs) if node else ():
        job = pool.jobs[job_id]
        here = [
            name
            for name, allocation in job.allocations.items()
            if allocation.slot.node_id == node_id
        ]
        for allocation_id in here[:most]:
            yield gangs.release(job, allocation_id, "lease_over", None, cause)
        most -= len(here)
        yield from gangs.conclude(job, now, cause)
        if most <= 0:
            return


def leases_over(pool: Pool, now: int) -> Iterator[Decision]:
    """One node per step is enough: `next_wake` is due until none is left."""
    for node_id, lost_at in pool.lost.items():
        if now >= lost_at + pool.lease_ms:
            yield from release_all(pool, node_id, now, "", RELEASES_PER_STEP)
        return


def command(pool: Pool, message: NodeCommand, item: Input, now: int) -> Iterator[Decision]:
    if not pool.answered.is_due(item, "placement"):
        return
    node_id = message.node_id
    if pool.settings is None:
        yield refuse_command(item, node_id, "unknown_pool", "this lane has no pool")
    elif node_id not in pool.board.nodes and node_id not in pool.cordons:
        detail = f"no node {node_id} in pool {pool.name}"
        yield refuse_command(item, node_id, "unknown_node", detail)
    else:
        events = list(effects(pool, message, item))
        yield from events
        if isinstance(message, DrainNode) and node_id in pool.board.nodes:
            yield from drained(pool, node_id, now, item.id)
        yield accept_command(item, node_id, duplicate=not events)


def effects(pool: Pool, message: NodeCommand, item: Input) -> Iterator[Decision]:
    """Nothing when the node is as wished already."""
    node_id, draining = message.node_id, pool.cordons.get(message.node_id)
    match message:
        case UncordonNode() if draining is not None:
            yield item.leads_to(NodeUncordoned(node_id=node_id))
        case CordonNode(reason=reason) if draining is None:
            yield item.leads_to(NodeCordoned(node_id=node_id, reason=reason))
        case DrainNode(reason=reason) if not draining:
            yield item.leads_to(NodeCordoned(node_id=node_id, draining=True, reason=reason))
