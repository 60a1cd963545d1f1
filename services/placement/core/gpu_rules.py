"""Nodes whose GPUs failed, are slowed down, or are not those declared: they take no new work.

A GPU that failed breaks what runs on it, so jobs with room elsewhere leave its node, and the cordon
lasts until the machine was booted anew or an operator lifts it: an agent that was restarted has
forgotten the error, and the GPU is as before. Other cordons end with the last such problem or with
the next join. Slow GPUs take at most the pool's `mitigation_share` of nodes out of use, as heat may
slow a whole hall; the other problems at most `MOST_UNUSABLE`, as a change of the driver may show
them everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.migration.drain import migrate_off_node
from services.placement.core.pool.state import Pool
from shared.contracts.breaker import most_out_of_use
from shared.contracts.faults import FaultDismissed
from shared.contracts.node_problems import (
    GPU_FAULT,
    GPU_PROBLEMS,
    GPUS_UNUSABLE,
    NodeProblem,
    ReportedProblem,
)
from shared.contracts.nodes import NodeCordoned, NodeUncordoned
from shared.ledger.decider import Decision, Input, UnitStart

MOST_UNUSABLE = 0.5
"""Share of a pool's nodes that are cordoned for GPUs that failed or differ; one always may be."""
FINAL = (GPU_FAULT,)
"""Stands for the reasons of a cordon that has none, as an operator's: nothing is added to it."""
STILL_PRESENT = "still present"


def follow_rules(pool: Pool, report: ReportedProblem, now: int, cause: str) -> Iterator[Decision]:
    """Cordon the node of a problem of GPUs that was noted, or lift that cordon after the last."""
    if report.problem not in GPU_PROBLEMS:
        return
    node_id = report.node_id
    if not report.present:
        if ends_cordon(pool, node_id):
            yield Decision(NodeUncordoned(node_id=node_id), cause)
        return
    if node_id not in pool.cordons:
        if not has_room(pool, report.problem):
            return
        yield Decision(cordon_of(node_id, report.problem, report.detail), cause)
    elif report.problem == GPU_FAULT and GPU_FAULT not in pool.cordoned_for.get(node_id, FINAL):
        yield Decision(with_fault(pool, report), cause)
    if report.problem == GPU_FAULT:
        for moved in migrate_off_node(pool, node_id, now, cause):
            yield UnitStart(*moved)


def follow_dismissal(pool: Pool, message: FaultDismissed, item: Input) -> Iterator[Decision]:
    """Lift the cordon for a suspicion, and cordon the node again if its GPUs have a problem.

    A failure that was noted under that cordon counts even if it is not reported any more.
    """
    node_id = message.node_id
    if message.fault_id not in pool.cordoned_for.get(node_id, ()):
        return
    node = pool.board.nodes.get(node_id)
    known = node.problems if node else frozenset()
    if GPU_FAULT in pool.cordoned_for.get(node_id, ()):
        known |= {GPU_FAULT}
    yield item.decision(NodeUncordoned(node_id=node_id))
    present = [problem for problem in sorted(known & GPU_PROBLEMS) if has_room(pool, problem)]
    if present:
        yield item.decision(cordon_of(node_id, present[0], STILL_PRESENT))


def cordon_of(node_id: str, problem: NodeProblem, detail: str) -> NodeCordoned:
    reason = f"{problem}: {detail}"
    return NodeCordoned(node_id=node_id, reason=reason, until_joined=True, fault_ids=(problem,))


def with_fault(pool: Pool, report: ReportedProblem) -> NodeCordoned:
    """Return the cordon that the node has, which a failed GPU now is a reason of too."""
    node_id = report.node_id
    return NodeCordoned(
        node_id=node_id,
        draining=pool.cordons[node_id],
        reason=f"{report.problem}: {report.detail}",
        until_joined=node_id in pool.leaving,
        fault_ids=(*pool.cordoned_for[node_id], GPU_FAULT),
    )


def ends_cordon(pool: Pool, node_id: str) -> bool:
    """Return whether a rule has cordoned the node, and no problem keeps the cordon."""
    reasons = pool.cordoned_for.get(node_id, ("",))
    by_rule = GPU_PROBLEMS.issuperset(reasons) and GPU_FAULT not in reasons
    return by_rule and not (pool.board.nodes[node_id].problems & GPU_PROBLEMS)


def has_room(pool: Pool, problem: NodeProblem) -> bool:
    """Return whether one more of the pool's nodes may be cordoned for the problem.

    What nodes report of their GPUs leaves the share of mitigation as it is, and the other way
    round: one node that is wrong about itself blocks no mitigation.
    """
    settings, nodes = pool.settings, pool.board.nodes
    if settings is None:
        return False
    unusable = [n for n in pool.cordoned_for if n in nodes and is_unusable(pool, n)]
    if problem in GPUS_UNUSABLE:
        return len(unusable) < max(most_out_of_use(MOST_UNUSABLE, len(nodes)), 1)
    if settings.mitigation == "off":
        return False
    others = sum(node_id in nodes for node_id in pool.cordons) - len(unusable)
    return others < most_out_of_use(settings.mitigation_share, len(nodes))


def is_unusable(pool: Pool, node_id: str) -> bool:
    """Return whether a node is cordoned for GPUs that failed or differ, and nothing else."""
    return GPUS_UNUSABLE.issuperset(pool.cordoned_for[node_id])
