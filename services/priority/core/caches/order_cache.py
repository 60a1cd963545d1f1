"""The waiting jobs in the order of a policy whose keys hold while a job waits.

Only jobs that began or ceased to wait are looked at: ranking 10,000 of them costs as much as
naming the first 512.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TypeAlias

from shared.contracts.ranking import RANKED_MOST, Ranked

Position: TypeAlias = tuple[float, float, float, str, Ranked]
"""Tier, score negated, submission, job id: no two positions are equal in the first four."""
OrderKey: TypeAlias = tuple[object, ...]
"""Everything an order depends on besides its jobs; another key makes all positions stale."""

STALE_MOST = 4096
"""Where nothing is ranked, nothing clears the stale jobs: beyond this the cache is dropped."""
SORTED_MOST = 64
"""More new positions than this are sorted in with the whole order."""

ranked_of = itemgetter(4)


@dataclass(slots=True, eq=False)
class OrderCache:
    """A cache beside the queue's state: it can be rebuilt at any moment."""

    key: OrderKey | None = None
    order: list[Position] = field(default_factory=list)
    positions: dict[str, Position] = field(default_factory=dict)
    stale: dict[str, None] = field(default_factory=dict)
    """Jobs whose position may have changed or ceased."""
    uses_runtime: bool = False
    """The policy used run times."""
    _first: tuple[Ranked, ...] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the cache out of snapshots."""
        return (OrderCache, ())

    def mark(self, job_id: str) -> None:
        """Make a job's position stale."""
        if self.key is None:
            return
        if len(self.stale) < STALE_MOST:
            self.stale[job_id] = None
        else:
            self.clear()

    def clear(self) -> None:
        if self.key is not None:
            self.begin(None, ())

    def begin(self, key: OrderKey | None, waiting: Iterable[str]) -> None:
        """Start anew with every waiting job stale."""
        self.key = key
        self.order.clear()
        self.positions.clear()
        self.stale = dict.fromkeys(waiting)
        self.uses_runtime = False
        self._first = None

    def drop_stale(self) -> None:
        """Remove the stale jobs; those that still wait are inserted again."""
        self._first = None
        gone = [position for name in self.stale if (position := self.positions.pop(name, None))]
        if len(gone) > SORTED_MOST:
            self.order = [position for position in self.order if position[3] not in self.stale]
        else:
            for position in gone:
                del self.order[bisect_left(self.order, position)]
        self.stale = {}

    def insert(self, positions: list[Position]) -> None:
        self._first = None
        for position in positions:
            self.positions[position[3]] = position
        if len(positions) > SORTED_MOST:
            self.order += positions
            self.order.sort()
            return
        for position in positions:
            insort(self.order, position)

    def first(self) -> tuple[Ranked, ...]:
        """Return the first waiting jobs, best first; the same tuple as long as nothing is stale."""
        if self._first is None:
            self._first = tuple(map(ranked_of, self.order[:RANKED_MOST]))
        return self._first
