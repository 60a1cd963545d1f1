"""The answer to an agent that opens a session."""

from __future__ import annotations

from typing import Literal

from services.executor.core.agents.state import AgentPool, Place
from shared.contracts.agents import Hello

Action = Literal["continue", "register", "fence", "behind"]


def action_for(state: AgentPool, hello: Hello) -> Action:
    """Return what the agent does next.

    A fold that is behind the agent knows nothing about it. An incarnation that the ledger lost, one
    whose lease has lapsed, and one that is not newer than all known ones must end; a newer one
    registers.
    """
    if state.through < Place.of(hello.applied):
        return "behind"
    node = state.nodes.get(hello.node_id)
    if hello.lapsed:
        return "fence"
    if node is None or hello.incarnation.generation > node.generation:
        return "register"
    if hello.incarnation.uuid != node.incarnation or node.lost is not None:
        return "fence"
    return "continue"


def last_generation(state: AgentPool, node_id: str) -> int:
    """Return the highest generation of the node that the ledger knows; 0 before its first."""
    node = state.nodes.get(node_id)
    return node.generation if node else 0
