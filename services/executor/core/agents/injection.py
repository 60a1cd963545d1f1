"""The fault that an agent injects on its node, as it stands now."""

from __future__ import annotations

from services.executor.core.agents.state import AgentNode
from shared.contracts.agents import Injection

NONE = Injection(fault="none")


def injection_of(node: AgentNode | None, now: int) -> Injection:
    """Return the fault and the s until it ends, none for one that is over.

    Clocks of machines differ, and an order may come late: the agent counts from its receipt.
    """
    injected = node.injection.injected if node is not None and node.injection else None
    if injected is None or injected.fault == "link" or injected.until <= now:
        return NONE
    left_s = (injected.until - now) / 1000
    return Injection(fault=injected.fault, factor=injected.factor, left_s=min(left_s, 3600.0))
