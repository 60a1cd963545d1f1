"""The answer to an agent that opens a session."""

from __future__ import annotations

from typing import Literal

from services.executor.core.agents.state import UNKNOWN_WRITER, AgentPool, OrderPosition
from shared.contracts.agents import Hello

Action = Literal["continue", "register", "fence", "behind"]
MAX_GENERATION_STEP = 1_000_000
"""Most by which a generation exceeds the last known one, more than a node has in years.

A ledger that was restored, or that is of another pool, knows an earlier generation of the node, or
none. Without a bound one wrong message would use up all generations, and with them the name."""


def action_for(state: AgentPool, hello: Hello, *, is_complete: bool = False) -> Action:
    """Return what the agent does next; `is_complete`: the ledger was read to its end for it.

    A fold that is behind the agent knows nothing about it. If the whole ledger is behind it, or the
    record of its last order is another one there, the agent carried out orders of another ledger:
    that of the pool which it left, or what a restore did not bring back. Then its incarnation must
    end, as must one that the ledger lost, one whose lease has lapsed, and one that is not newer
    than all known ones; a newer one registers.
    """
    if state.through < OrderPosition.of(hello.applied):
        return "fence" if is_complete else "behind"
    node = state.nodes.get(hello.node_id)
    if hello.lapsed or has_other_history(state, hello):
        return "fence"
    if hello.incarnation.generation > last_generation(state, hello.node_id):
        return "register"
    if node is None or hello.incarnation.uuid != node.incarnation or node.lost is not None:
        return "fence"
    return "continue"


def is_joined(state: AgentPool, hello: Hello) -> bool:
    """Return whether the agent has the incarnation whose workers the ledger knows."""
    node = state.nodes.get(hello.node_id)
    if node is None or hello.lapsed or node.lost is not None:
        return False
    return hello.incarnation.uuid == node.incarnation


def has_other_history(state: AgentPool, hello: Hello) -> bool:
    """Return whether the agent's last order may be of another ledger.

    An agent of an older version names no writer. One to which an executor named the writer as
    forgotten cannot be compared, and counts as another.
    """
    if not hello.writer:
        return False
    known = state.writer_of(hello.applied.seq)
    return hello.writer != known or known == UNKNOWN_WRITER


def generation_fault(state: AgentPool, hello: Hello) -> str:
    """Return why this ledger cannot know the generation, with a remedy; empty if it can."""
    highest = last_generation(state, hello.node_id) + MAX_GENERATION_STEP
    if hello.incarnation.generation <= highest:
        return ""
    rule = f"at most {highest} is allowed, {MAX_GENERATION_STEP} above the last known"
    remedy = "stop the agent, delete incarnation.json in its state folder, and start it"
    return f"incarnation.generation: {hello.incarnation.generation}; {rule}; {remedy}"


def last_generation(state: AgentPool, node_id: str) -> int:
    """Return the highest generation that the node may have had; 0 if none can have been its own.

    Of a name that is not known it is the floor: a node of this name may be forgotten.
    """
    node = state.nodes.get(node_id)
    return node.generation if node else state.generation_floor
