"""Commands about nodes: cordon, uncordon, drain, loss, and faults that are injected."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.lifecycle import injections, leases, nodes
from services.placement.core.migration.drain import drain
from services.placement.core.pool.node import Node
from services.placement.core.pool.state import Pool
from shared.contracts.injections import EndInjection, InjectFault
from shared.contracts.nodes import CordonNode, DeclareNodeLost, DrainNode, UncordonNode
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input, UnitStart

NodeCommand = CordonNode | DrainNode | UncordonNode | DeclareNodeLost | InjectFault | EndInjection


def decide_command(pool: Pool, message: NodeCommand, item: Input, now: int) -> Iterator[Decision]:
    """Answer the command once; the same command delivered again has no effect."""
    if not pool.answered.is_due(item, "placement"):
        return
    node_id = message.node_id
    if pool.settings is None:
        yield refuse_command(item, node_id, "unknown_pool", "this lane has no pool")
    elif isinstance(message, DeclareNodeLost):
        yield from declare_lost(pool, message, item, now)
    elif isinstance(message, InjectFault):
        yield from injections.inject(pool, message, item, now)
    elif isinstance(message, EndInjection):
        yield from injections.end_by_command(pool, message, item)
    elif node_id not in pool.board.nodes and node_id not in pool.cordons:
        if isinstance(message, UncordonNode) and may_be_gone(pool, node_id):
            yield accept_command(item, node_id, duplicate=True)
        else:
            yield refuse_unknown(pool, node_id, item)
    else:
        decisions = list(nodes.change_cordon(pool, message, item))
        yield from decisions
        if isinstance(message, DrainNode) and node_id in pool.board.nodes:
            for moved in drain(pool, node_id, now, item.id):
                decisions.append(moved)
                yield UnitStart(*moved)
        yield accept_command(item, node_id, duplicate=not decisions)


def may_be_gone(pool: Pool, node_id: str) -> bool:
    """Return whether a node of this name is gone, or may be among those that are forgotten."""
    return node_id in pool.generations or pool.generation_floor > 0


def declare_lost(pool: Pool, message: DeclareNodeLost, item: Input, now: int) -> Iterator[Decision]:
    """Answer the declaration; a node that was just heard is not powered off.

    A node that joined once and holds nothing any more is lost already: the command changes nothing.
    """
    node_id = message.node_id
    node = pool.board.nodes.get(node_id)
    if node is None and node_id in pool.generations:
        yield accept_command(item, node_id, duplicate=True)
    elif node is None:
        yield refuse_unknown(pool, node_id, item)
    elif message.powered_off and leases.is_heard(node):
        yield refuse_command(item, node_id, "node_heard", heard_detail(node))
    else:
        decisions = list(leases.declare_lost(pool, node, message, now, item.id))
        yield from decisions
        yield accept_command(item, node_id, duplicate=not decisions)


def refuse_unknown(pool: Pool, node_id: str, item: Input) -> Decision:
    detail = f"no node {node_id} in pool {pool.name}"
    return refuse_command(item, node_id, "unknown_node", detail)


def heard_detail(node: Node) -> str:
    silent_s = node.silence.silent_ms // 1000 if node.silence else 0
    least_s = leases.POWERED_OFF_AFTER_MS // 1000
    return f"silence of {node.node_id}: {silent_s} s; at least {least_s} s are allowed"
