"""An operator's commands about nodes: cordon, uncordon, drain."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.lifecycle import nodes
from services.placement.core.migration.drain import drain
from services.placement.core.pool.state import Pool
from shared.contracts.nodes import CordonNode, DrainNode, UncordonNode
from shared.ledger.answers import accept_command, refuse_command
from shared.ledger.decider import Decision, Input, UnitStart


def decide_command(
    pool: Pool, message: CordonNode | DrainNode | UncordonNode, item: Input, now: int
) -> Iterator[Decision]:
    """Answer the command once; the same command delivered again has no effect."""
    if not pool.answered.is_due(item, "placement"):
        return
    node_id = message.node_id
    if pool.settings is None:
        yield refuse_command(item, node_id, "unknown_pool", "this lane has no pool")
    elif node_id not in pool.board.nodes and node_id not in pool.cordons:
        detail = f"no node {node_id} in pool {pool.name}"
        yield refuse_command(item, node_id, "unknown_node", detail)
    else:
        decisions = list(nodes.change_cordon(pool, message, item))
        yield from decisions
        if isinstance(message, DrainNode) and node_id in pool.board.nodes:
            for moved in drain(pool, node_id, now, item.id):
                decisions.append(moved)
                yield UnitStart(*moved)
        yield accept_command(item, node_id, duplicate=not decisions)
