"""The allotments of a pool's scheduler, its memory, and the needs of recent workers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from services.placement.core.pool.shape import Shape

AT_ONCE_MS = 1000
"""Wall ms for which rounds wait for a proposal, before they go on by the last one."""
RECENT_WORKERS = 2000
"""Workers whose needs say what arrives next."""


class Allotted(NamedTuple):
    """GPU type, number of workers and nodes of a job until the next proposal."""

    gpu_type: str
    workers: int
    nodes: tuple[tuple[str, int], ...] = ()
    """(node, workers on it) as the scheduler chose them; empty: the pool chooses."""


class OpenProposal(NamedTuple):
    """A proposal that the scheduler's process makes."""

    seq: int
    """Of the record that opened it."""
    at: int
    until: int
    """ms"""


@dataclass(slots=True)
class Schedule:
    """The last proposal of a pool's scheduler, and the next one while it is made."""

    scheduler: str = ""
    number: int = 0
    at: int = 0
    until: int = 0
    """ms, when the next one is due."""
    memory: str = "{}"
    """JSON"""
    refused: str = ""
    """The scheduler and the rule that the last proposal broke; empty: none."""
    allotted: Mapping[str, Allotted] = field(default_factory=dict)
    open: OpenProposal | None = None

    @property
    def next_at(self) -> int:
        """ms by which the next proposal is there, or opened."""
        return self.until if self.open is None else self.open.until

    def rounds_from(self) -> int | None:
        """Return the ms before which no round is run; None: nothing is waited for.

        Rounds wait for a proposal that is made at once. Without one before it, of the same
        scheduler, they have nothing else to go by.
        """
        if self.open is None:
            return None
        if not self.scheduler:
            return self.open.until
        return min(self.open.until, self.open.at + AT_ONCE_MS)


@dataclass(slots=True)
class Shadow:
    """The last proposal of a scheduler that has no effect."""

    scheduler: str = ""
    number: int = 0
    until: int = 0
    """ms, before which none follows."""
    memory: str = "{}"
    """JSON"""


@dataclass(slots=True)
class RecentNeeds:
    """The needs of the workers that were placed last, of a pool that packs by fragments."""

    order: deque[Shape] = field(default_factory=deque)
    counts: Counter[Shape] = field(default_factory=Counter)

    def add(self, shape: Shape, workers: int) -> None:
        """Count the workers of a gang; those with the same types and needs are alike."""
        need = shape._replace(selector=(), nodes=(), min_workers=1, max_workers=1)
        for _ in range(min(workers, RECENT_WORKERS)):
            self.order.append(need)
            self.counts[need] += 1
            if len(self.order) > RECENT_WORKERS:
                self._forget(self.order.popleft())

    def _forget(self, need: Shape) -> None:
        self.counts[need] -= 1
        if not self.counts[need]:
            del self.counts[need]
