"""Folds of nodes and of the pool's settings."""

from __future__ import annotations

from services.placement.core.pool.board import Kind, Node
from services.placement.core.pool.shape import GPU, MIB
from services.placement.core.pool.state import Pool
from shared.contracts.access import PoolConfigured
from shared.contracts.nodes import (
    NodeCordoned,
    NodeHealthNoted,
    NodeJoined,
    NodeLost,
    NodeUncordoned,
)
from shared.ledger.decider import Fact

NodeEvent = NodeJoined | NodeLost | NodeCordoned | NodeUncordoned | NodeHealthNoted


def fold_node(pool: Pool, event: NodeEvent, fact: Fact) -> None:
    """Apply a fact of one node."""
    match event:
        case NodeJoined():
            join(pool, event, fact)
        case NodeLost(node_id=node_id):
            lose(pool, pool.board.nodes[node_id], fact)
        case NodeCordoned(node_id=node_id, draining=draining):
            pool.cordons[node_id] = draining
            reindex(pool, node_id, fact.at)
        case NodeUncordoned(node_id=node_id):
            pool.cordons.pop(node_id, None)
            reindex(pool, node_id, fact.at)
        case NodeHealthNoted():
            pool.board.suspect(event.node_id, event.fault_id, event.slowdown, event.until)


def configure(pool: Pool, event: PoolConfigured, fact: Fact) -> None:
    """Take over new settings: queue, hold reasons and indexes may all be different."""
    pool.settings = event
    pool.touch(fact.at)
    pool.mark_unreported()
    pool.rebuild_queue()
    for node in pool.board.nodes.values():
        update_index(pool, node)


def join(pool: Pool, event: NodeJoined, fact: Fact) -> None:
    """Add a node, or its new incarnation, with all of its capacity free."""
    labels = tuple(sorted(event.labels.items()))
    cpu, mem = round(event.cpus * 1000), round(event.mem_gib * MIB)
    node = pool.board.nodes[event.node_id] = Node(
        node_id=event.node_id,
        incarnation=event.incarnation,
        backend=event.backend,
        kind=Kind(event.gpu_type, event.gpus, cpu, mem, labels),
        labels=dict(event.labels),
        free=[GPU] * event.gpus,
        whole=event.gpus,
        cpu_free=cpu,
        mem_free=mem,
        rack=event.labels.get("rack", event.rack),
    )
    update_index(pool, node)
    pool.touch(fact.at)
    pool.mark_unreported()


def lose(pool: Pool, node: Node, fact: Fact) -> None:
    """Take a lost node out of use; it stays known while jobs have allocations on it."""
    node.lost_at = fact.at
    update_index(pool, node)
    pool.lost[node.node_id] = fact.at
    pool.touch(fact.at)
    pool.mark_unreported()
    forget_if_gone(pool, node)


def forget_if_gone(pool: Pool, node: Node) -> None:
    """Remove a lost node whose last allocation is released."""
    if node.lost_at is not None and not node.jobs:
        del pool.board.nodes[node.node_id]
        del pool.lost[node.node_id]


def reindex(pool: Pool, node_id: str, at: int) -> None:
    """Update the indexes after a cordon was set or lifted."""
    node = pool.board.nodes.get(node_id)
    pool.touch(at)
    pool.mark_unreported()
    if node is not None:
        update_index(pool, node)


def update_index(pool: Pool, node: Node) -> None:
    """Index the node if something may start on it, else take it off the indexes."""
    allowed = pool.settings is None or node.backend in pool.settings.backends
    if allowed and node.lost_at is None and node.node_id not in pool.cordons:
        pool.board.index(node)
    else:
        pool.board.unindex(node)
