"""Problems of GPUs that placement noted, restated in the ledger of fail-slow.

So the health of a node, and what is known of its GPUs, are the same after a restart, whether the
agent reads them again or not.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.failslow.core.health.gpu_problems import SEVERITY, fault_id_of
from services.failslow.core.plans.planning import score_node
from services.failslow.core.state import FailSlowState
from shared.contracts.node_problems import PROBLEMS_FROM, NodeGpusNoted, NodeProblemNoted
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.ledger.decider import Decision, Input


def note_gpu_problems(state: FailSlowState, item: Input, now: int) -> Iterator[Decision]:
    """Note a problem of GPUs that began or is over; a node that is lost or joins anew has none.

    Earlier releases cannot read it: a pool that was not upgraded has none noted.
    """
    if state.pool is None or state.pool.release < PROBLEMS_FROM:
        return
    match item.message:
        case NodeProblemNoted(problem=problem) as noted if problem in SEVERITY:
            if state.gpu_problems.is_known(noted.node_id, problem) is not noted.present:
                event = NodeGpusNoted(**noted.model_dump())
                yield item.decision(event)
                if event.present:
                    yield from score_node(state, event.node_id, fault_id_of(event), now)
        case NodeJoined(node_id=node_id) | NodeLost(node_id=node_id) as change:
            for problem in state.gpu_problems.of(node_id):
                yield item.decision(
                    NodeGpusNoted(
                        node_id=node_id,
                        incarnation=change.incarnation,
                        problem=problem,
                        present=False,
                    )
                )
