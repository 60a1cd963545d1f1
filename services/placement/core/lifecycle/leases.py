"""Leases of nodes: silence, terms, and the release of what a node held that is proved dead.

That an incarnation is silent for `Pool.lost_after_ms` means that every deadline it ever had has
passed: it stays true, so it does not matter how late it is decided. No rule here reads `now` to
release anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from services.placement.core.lifecycle.ends import job_decision
from services.placement.core.lifecycle.nodes import join, lose, release_all
from services.placement.core.pool.node import Node
from services.placement.core.pool.state import Pool
from shared.contracts.nodes import (
    DeclareNodeLost,
    NodeHeard,
    NodeSuspected,
    NodeTermsApplied,
    WorkerStuckNoted,
)
from shared.contracts.reports import (
    NodesHeard,
    NodesSilent,
    NodeTermsReported,
    SilentNode,
    WorkerStuck,
)
from shared.ledger.decider import Decision, UnitStart, WakeStart

POWERED_OFF_AFTER_MS = 60_000
"""A node that was heard more recently is not powered off, whatever an operator says."""


def note_silence(pool: Pool, message: NodesSilent, now: int, cause: str) -> Iterator[Decision]:
    """Suspect silent nodes, and lose those whose silence proves that nothing of them lives.

    The silence is compared with the terms of this ledger: the shell may know older ones. That of a
    suspected node may be shorter than before, where the count had to begin anew.
    """
    for silent in message.nodes:
        node = pool.board.nodes.get(silent.node_id)
        if node is None or node.incarnation != silent.incarnation or node.is_over:
            continue
        if silent.terms_id != node.oldest_terms:
            continue
        if silent.silent_ms >= pool.lost_after_ms(node):
            yield from lose(pool, node, "silent", now, cause, silent_ms=silent.silent_ms)
        elif silent.silent_ms >= pool.suspect_after_ms(node) or node.silence is not None:
            yield UnitStart(suspect_node(pool, node, silent, message.offset), cause)


def suspect_node(pool: Pool, node: Node, silent: SilentNode, offset: int) -> NodeSuspected:
    lost_after_ms = pool.lost_after_ms(node)
    return NodeSuspected(
        node_id=node.node_id,
        incarnation=node.incarnation,
        silent_ms=silent.silent_ms,
        offset=offset,
        lost_after_ms=math.ceil(lost_after_ms) if math.isfinite(lost_after_ms) else None,
    )


def note_heard(pool: Pool, message: NodesHeard, cause: str) -> Iterator[Decision]:
    """End the suspicion of nodes that sent a heartbeat."""
    for node_id, incarnation in sorted(message.nodes.items()):
        node = pool.board.nodes.get(node_id)
        if node is not None and node.incarnation == incarnation and node.silence is not None:
            yield UnitStart(NodeHeard(node_id=node_id, incarnation=incarnation), cause)


def apply_terms(pool: Pool, report: NodeTermsReported, cause: str) -> Iterator[Decision]:
    """Note that a node uses no terms older than these any more.

    The report counts as a heartbeat. The end of a suspicion is an event of its own: it is public,
    and jobs that wait are tried again.
    """
    node = pool.board.nodes.get(report.node_id)
    if node is None or node.incarnation != report.incarnation:
        return
    if report.terms_id in list(node.terms)[1:]:
        yield from note_heard(pool, NodesHeard(nodes={node.node_id: node.incarnation}), cause)
        applied = NodeTermsApplied(
            node_id=report.node_id, incarnation=report.incarnation, terms_id=report.terms_id
        )
        yield Decision(applied, cause)


def declare_lost(
    pool: Pool, node: Node, message: DeclareNodeLost, now: int, cause: str
) -> Iterator[Decision]:
    """Lose a node that an operator gave up; what it holds is released by reports or silence."""
    if message.powered_off or node.lost_at is None:
        detail, powered_off = message.reason, message.powered_off
        yield from lose(pool, node, "declared", now, cause, powered_off=powered_off, detail=detail)


def is_heard(node: Node) -> bool:
    """Return whether the node may have been heard in the last minute, as far as the ledger says."""
    return node.silence is None or node.silence.silent_ms < POWERED_OFF_AFTER_MS


def note_stuck(pool: Pool, report: WorkerStuck, cause: str) -> Iterator[Decision]:
    """Note once that a killed worker does not die; its GPUs stay held."""
    job = pool.jobs.get(report.job_id)
    if job is None or report.allocation_id not in job.allocations:
        return
    if report.allocation_id not in pool.stuck:
        stuck = WorkerStuckNoted(
            job_id=job.job_id,
            tenant=job.tenant,
            attempt=job.attempt,
            allocation_id=report.allocation_id,
            node_id=job.allocations[report.allocation_id].slot.node_id,
            detail=report.detail,
        )
        yield job_decision(job, cause, stuck)


def release_lost(pool: Pool, now: int) -> Iterator[Decision]:
    """Release what nodes held that are proved dead; due again until nothing is left."""
    for node_id in list(pool.lost):
        node = pool.board.nodes.get(node_id)
        if node is not None and node.is_over:
            yield from as_wake(release_all(pool, node, now, ""))


def join_held_back(pool: Pool, now: int) -> Iterator[Decision]:
    """Let registrations of other machines join whose predecessors hold nothing any more."""
    for node_id, registration in list(pool.held_back.items()):
        node = pool.board.nodes.get(node_id)
        if node is None or not node.jobs:
            if node is not None:
                yield from as_wake(lose(pool, node, "replaced", now, ""))
            yield from as_wake(join(pool, registration, ""))


def as_wake(decisions: Iterator[Decision]) -> Iterator[Decision]:
    """Mark the units of an answer as those that follow from the state alone."""
    for decision in decisions:
        yield WakeStart(*decision) if isinstance(decision, UnitStart) else decision


def is_due(pool: Pool) -> bool:
    """Return whether `release_lost` or `join_held_back` has something to do."""
    nodes = pool.board.nodes
    return any(nodes[node_id].is_over for node_id in pool.lost) or any(
        node_id not in nodes or not nodes[node_id].jobs for node_id in pool.held_back
    )
