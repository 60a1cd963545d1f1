"""Classifies why attempts ended: by a fault that was meant to end them, or by the control plane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.parts.chaos.nodes.node_load import RecordedAttempt

EVERYWHERE = ""
"""The node of an outage that all nodes have."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A node, or every node, was without its control plane; `time.time()`, recovery included."""

    node: str
    begun_at: float
    ended_at: float
    is_long: bool = False
    """Whether it was meant to outlast the lease; else only its recovery made it long."""


@dataclass(slots=True)
class OutageAccount:
    """The outages, targets and recoveries of the rounds so far."""

    least_s: float
    """Outages shorter than this stop no worker, by the terms of the pool."""
    outages: list[Outage] = field(default_factory=list)
    targets: set[str] = field(default_factory=set)
    """Allocations whose step or worker was killed."""
    recovery_s: dict[str, list[float]] = field(default_factory=dict)
    """Time from healing to recovery by kind of fault."""
    not_recovered: list[str] = field(default_factory=list)

    def stopped_by_slow_recovery(
        self, attempts: Iterable[RecordedAttempt]
    ) -> list[RecordedAttempt]:
        """Return those that are explained by outages that were meant to be shorter."""
        return [
            attempt
            for attempt in attempts
            if not self.targets & attempt.nodes.keys()
            and (explaining := self._explaining(attempt))
            and not any(outage.is_long for outage in explaining)
        ]

    def unexplained(self, attempts: Iterable[RecordedAttempt]) -> list[RecordedAttempt]:
        """Return those that no fault explains: the control plane has stopped them."""
        return [attempt for attempt in attempts if not self._explains(attempt)]

    def _explains(self, attempt: RecordedAttempt) -> bool:
        return bool(self.targets & attempt.nodes.keys() or self._explaining(attempt))

    def _explaining(self, attempt: RecordedAttempt) -> list[Outage]:
        """Return the outages of its nodes that were long enough to stop its workers."""
        return [
            outage
            for node in set(attempt.nodes.values())
            for outage in self._outages_of(node)
            if outage.ended_at - outage.begun_at >= self.least_s
            and outage.ended_at >= attempt.placed_at
            and (not attempt.ended_at or attempt.ended_at >= outage.begun_at)
        ]

    def _outages_of(self, node: str) -> list[Outage]:
        """Return the outages of a node; those that overlap are one."""
        own = (outage for outage in self.outages if outage.node in (node, EVERYWHERE))
        merged: list[Outage] = []
        for outage in sorted(own, key=lambda outage: outage.begun_at):
            if merged and outage.begun_at <= merged[-1].ended_at:
                last = merged.pop()
                ends_at = max(last.ended_at, outage.ended_at)
                is_long = last.is_long or outage.is_long
                merged.append(Outage(node, last.begun_at, ends_at, is_long))
            else:
                merged.append(outage)
        return merged
