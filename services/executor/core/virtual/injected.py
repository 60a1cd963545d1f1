"""The effect of injected faults on virtual nodes at one moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shared.contracts.injections import FLAP_S, FaultInjected

STOPPED_SLOWDOWN = 1e6
"""Slowdown of a node that stands still; its workers go on when the fault is over."""
COMMUNICATION_SHARE = 0.25
"""Share of an iteration that a virtual gang communicates, as far as links matter to it."""


class NodeSlowdown(NamedTuple):
    """Multiples of the time that own work and communication take."""

    work: float = 1.0
    link: float = 1.0


NO_SLOWDOWN = NodeSlowdown()


def slowdowns_at(injections: Iterable[FaultInjected], now: int) -> dict[str, NodeSlowdown]:
    """Return the slowdowns of slow nodes at `now` ms; a fault ends at its own time."""
    slowdowns = {
        injected.node_id: slowdown_of(injected, now)
        for injected in injections
        if injected.until > now
    }
    return {node_id: slow for node_id, slow in slowdowns.items() if slow != NO_SLOWDOWN}


def slowdown_of(injected: FaultInjected, now: int) -> NodeSlowdown:
    match injected.fault:
        case "slow":
            return NodeSlowdown(work=injected.factor)
        case "stop":
            return NodeSlowdown(work=STOPPED_SLOWDOWN)
        case "link":
            return NodeSlowdown(link=injected.factor)
        case "flap":
            turns = (injected.until - now) // round(FLAP_S * 1000)
            return NO_SLOWDOWN if turns % 2 else NodeSlowdown(work=injected.factor)
