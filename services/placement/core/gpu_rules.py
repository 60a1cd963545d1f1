"""Nodes whose GPUs failed, are slowed down, or are not those declared: they take no new work.

A GPU that failed breaks what runs on it, so jobs with room elsewhere leave its node; a slow one
takes at most the pool's `mitigation_share` of nodes out of use, as heat may slow a whole hall. The
cordon ends with the last such problem, with the next join, or by an operator, and then stays off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from services.placement.core.migration.drain import leave_where_room
from services.placement.core.pool.state import Pool
from shared.contracts.node_problems import NodeProblem, ReportedProblem
from shared.contracts.nodes import NodeCordoned, NodeUncordoned
from shared.ledger.decider import Decision, UnitStart

FAULT: Final[NodeProblem] = "gpu_fault"
SLOW: Final[NodeProblem] = "gpu_slow"
DIFFERS: Final[NodeProblem] = "inventory_differs"
RULES: Final[frozenset[NodeProblem]] = frozenset((FAULT, SLOW, DIFFERS))


def follow_rules(pool: Pool, report: ReportedProblem, now: int, cause: str) -> Iterator[Decision]:
    """Cordon the node of a problem of GPUs that was noted, or lift that cordon after the last."""
    if report.problem not in RULES:
        return
    node_id = report.node_id
    if not report.present:
        if ends_cordon(pool, node_id):
            yield Decision(NodeUncordoned(node_id=node_id), cause)
        return
    if node_id not in pool.cordons and (report.problem != SLOW or has_room(pool)):
        yield Decision(cordon_of(report), cause)
    if report.problem == FAULT:
        for moved in leave_where_room(pool, node_id, now, cause):
            yield UnitStart(*moved)


def cordon_of(report: ReportedProblem) -> NodeCordoned:
    return NodeCordoned(
        node_id=report.node_id,
        reason=f"{report.problem}: {report.detail}",
        until_joined=True,
        fault_ids=(report.problem,),
    )


def ends_cordon(pool: Pool, node_id: str) -> bool:
    """Return whether a rule has cordoned the node, and no such problem of it is left."""
    by_rule = RULES.issuperset(pool.cordoned_for.get(node_id, ("",)))
    return by_rule and not (pool.board.nodes[node_id].problems & RULES)


def has_room(pool: Pool) -> bool:
    """Return whether one more of the pool's nodes may be cordoned."""
    settings, nodes = pool.settings, pool.board.nodes
    if settings is None or settings.mitigation == "off":
        return False
    share, count = settings.mitigation_share, len(nodes)
    most = max(int(share * count), 1) if count > 1 and share else 0
    return sum(node_id in nodes for node_id in pool.cordons) < most
