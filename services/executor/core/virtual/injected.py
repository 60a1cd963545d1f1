"""The effect of injected faults on virtual nodes at one moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shared.contracts.injections import FLAP_S, FaultInjected

STOPPED = 1e6
"""Slowdown of a node that stands still; its workers go on when the fault is over."""
COMMUNICATION = 0.25
"""Share of an iteration that a virtual gang communicates, as far as links matter to it."""


class NodeSpeed(NamedTuple):
    """Multiples of the time that own work and communication take."""

    work: float = 1.0
    link: float = 1.0


WELL = NodeSpeed()


def speeds_at(injections: Iterable[FaultInjected], now: int) -> dict[str, NodeSpeed]:
    """Return the speeds of the nodes that are slow at `now` ms; a fault ends at its own time."""
    speeds = {
        injected.node_id: speed_of(injected, now) for injected in injections if injected.until > now
    }
    return {node_id: speed for node_id, speed in speeds.items() if speed != WELL}


def speed_of(injected: FaultInjected, now: int) -> NodeSpeed:
    match injected.fault:
        case "slow":
            return NodeSpeed(work=injected.factor)
        case "stop":
            return NodeSpeed(work=STOPPED)
        case "link":
            return NodeSpeed(link=injected.factor)
        case "flap":
            turns = (injected.until - now) // round(FLAP_S * 1000)
            return WELL if turns % 2 else NodeSpeed(work=injected.factor)
