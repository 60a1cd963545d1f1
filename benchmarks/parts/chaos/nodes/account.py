"""Why attempts ended: by a fault that was meant to end them, or by the control plane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.parts.chaos.nodes.node_load import Attempt

EVERYWHERE = ""
"""The node of an outage that all nodes have."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A node, or every node, was without its control plane; `time.time()`, recovery included."""

    node: str
    begun_at: float
    ended_at: float


@dataclass(slots=True)
class Account:
    """What the rounds did so far."""

    least_s: float
    """Outages shorter than this stop no worker, by the terms of the pool."""
    outages: list[Outage] = field(default_factory=list)
    targets: set[str] = field(default_factory=set)
    """Allocations whose step or worker was killed."""
    recovery_s: dict[str, list[float]] = field(default_factory=dict)
    """Time from healing to recovery by kind of fault."""
    not_recovered: list[str] = field(default_factory=list)

    def unexplained(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        """Return those that no fault explains: the control plane has stopped them."""
        return [attempt for attempt in attempts if not self._explains(attempt)]

    def _explains(self, attempt: Attempt) -> bool:
        if self.targets & attempt.nodes.keys():
            return True
        return any(
            outage.ended_at - outage.begun_at >= self.least_s
            and outage.ended_at >= attempt.placed_at
            and (not attempt.ended_at or attempt.ended_at >= outage.begun_at)
            for node in set(attempt.nodes.values())
            for outage in self._outages_of(node)
        )

    def _outages_of(self, node: str) -> list[Outage]:
        """Return the outages of a node; those that overlap are one."""
        own = (outage for outage in self.outages if outage.node in (node, EVERYWHERE))
        merged: list[Outage] = []
        for outage in sorted(own, key=lambda outage: outage.begun_at):
            if merged and outage.begun_at <= merged[-1].ended_at:
                last = merged.pop()
                ends_at = max(last.ended_at, outage.ended_at)
                merged.append(Outage(node, last.begun_at, ends_at))
            else:
                merged.append(outage)
        return merged
