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
"""Tier, score negated, submission, job id: no two places are equal in the first four."""
OrderKey: TypeAlias = tuple[object, ...]
"""What an order depends on besides its jobs; another one means that no place holds."""

STALE_MOST = 4096
"""Where nobody ranks, nobody clears what is stale: rather all is looked at anew."""
SORTED_MOST = 64
"""More new places than this are sorted in with the whole line."""

named = itemgetter(4)


@dataclass(slots=True, eq=False)
class OrderCache:
    """A memo of the queue's state and no part of it: it can be made anew at any moment."""

    by: OrderKey | None = None
    line: list[Position] = field(default_factory=list)
    places: dict[str, Position] = field(default_factory=dict)
    stale: dict[str, None] = field(default_factory=dict)
    """Jobs whose place may be another one, or none."""
    asks_runtime: bool = False
    """The policy looked at run times."""
    _first: tuple[Ranked, ...] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """No snapshot holds it."""
        return (OrderCache, ())

    def mark(self, job_id: str) -> None:
        if self.by is None:
            return
        if len(self.stale) < STALE_MOST:
            self.stale[job_id] = None
        else:
            self.forget()

    def forget(self) -> None:
        if self.by is not None:
            self.begin(None, ())

    def begin(self, by: OrderKey | None, waiting: Iterable[str]) -> None:
        """All anew."""
        self.by = by
        self.line.clear()
        self.places.clear()
        self.stale = dict.fromkeys(waiting)
        self.asks_runtime = False
        self._first = None

    def leave(self) -> None:
        """Who is stale has no place until it is given one."""
        self._first = None
        gone = [place for name in self.stale if (place := self.places.pop(name, None))]
        if len(gone) > SORTED_MOST:
            self.line = [place for place in self.line if place[3] not in self.stale]
        else:
            for place in gone:
                del self.line[bisect_left(self.line, place)]
        self.stale = {}

    def enter(self, places: list[Position]) -> None:
        for place in places:
            self.places[place[3]] = place
        if len(places) > SORTED_MOST:
            self.line += places
            self.line.sort()
            return
        for place in places:
            insort(self.line, place)

    def first(self) -> tuple[Ranked, ...]:
        """The first waiting jobs, best first; the same tuple as long as nothing is stale."""
        if self._first is None:
            self._first = tuple(map(named, self.line[:RANKED_MOST]))
        return self._first
