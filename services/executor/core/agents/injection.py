"""The fault that an agent injects on its node, as it stands now."""

from __future__ import annotations

from services.executor.core.agents.state import AgentNode
from shared.contracts.agents import Injection
from shared.contracts.injections import MAX_INJECTION_S

NO_INJECTION = Injection(fault="none")


def injection_of(node: AgentNode | None, now: int) -> Injection:
    """Return the fault and the s until it ends, none for one that is over.

    Clocks of machines differ, and an order may come late: the agent counts from its receipt.
    """
    injected = node.injection.injected if node is not None and node.injection else None
    if injected is None or injected.fault == "link" or injected.until <= now:
        return NO_INJECTION
    left_s = min((injected.until - now) / 1000, MAX_INJECTION_S)
    return Injection(
        fault=injected.fault, factor=injected.factor, left_s=min(left_s, MAX_INJECTION_S)
    )
