"""Reports the problems of a node that its heartbeats, and other agents with its identity, show."""

from __future__ import annotations

from time import monotonic

from services.executor.agents.lane import AgentLane
from services.executor.agents.sessions import Session, Sessions
from services.executor.core.agents.problems import changed_problems
from shared.contracts.agents import Heartbeat


def post_problems(
    lane: AgentLane, sessions: Sessions, session: Session, message: Heartbeat
) -> None:
    """Report what placement does not know yet of the problems of the joined incarnation.

    The next heartbeat repeats a report that was lost, and one that is not folded yet: placement
    notes a change once.
    """
    node = lane.state.nodes.get(session.node_id)
    if node is None or node.incarnation != message.incarnation.uuid:
        return
    changed = changed_problems(
        lane.state,
        session.node_id,
        {
            "disk_full": message.disk_problem,
            "cloned_identity": sessions.copy_of(session),
            "gpu_fault": message.gpu_fault,
            "gpu_slow": message.gpu_slow,
            "inventory_differs": message.inventory_problem,
        },
        {"gpu_fault": message.faulty_gpus, "gpu_slow": message.slow_gpus},
    )
    if changed and session.may_report_problems(monotonic()):
        lane.relays.problems.post(changed, len(changed))
