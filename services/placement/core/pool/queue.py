"""The waiting jobs, kept in the order of the last rank, so that a round need not sort them.

Jobs that look alike stand in one group: once one of them has found no room, the rest of its group
need not be asked in that round, however long it is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple, TypeAlias

from services.placement.core.pool.shape import Shape

UNRANKED = float("inf")
NO_ESTIMATE = 64
"""The bucket of jobs whose user gave no estimate: longer than any."""


class Kin(NamedTuple):
    """What jobs of one group have in common."""

    tier: int
    shape: Shape
    bucket: int = 0
    """Of the estimated run, where queue mode `easy` looks at it, see `bucket_of`."""
    alone: str = ""
    """Job id of one that avoids nodes or is in backoff: nobody fares as it does."""


class Entry(NamedTuple):
    """A job's place: entries of one round compare as its line is ordered."""

    unclaimed: bool
    tier: int
    is_in_turn: bool
    advised: float
    """The score, negated; `UNRANKED` without one."""
    submitted_at: int
    job_id: str


Group: TypeAlias = list[Entry]


def bucket_of(run_ms: int | None) -> int:
    """Estimates in one bucket differ by less than 4 times."""
    return NO_ESTIMATE if run_ms is None else run_ms.bit_length() // 2


def least_ms(bucket: int) -> int:
    """The shortest estimate that a bucket may hold."""
    return 1 << max(0, 2 * bucket - 1)


@dataclass(slots=True)
class Line:
    """Groups of waiting jobs; none is empty, each is in order."""

    groups: dict[Kin, Group] = field(default_factory=dict)

    def add(self, kin: Kin, entry: Entry) -> None:
        group = self.groups.get(kin)
        if group is None:
            self.groups[kin] = [entry]
        else:
            insort(group, entry)

    def remove(self, kin: Kin, entry: Entry) -> None:
        group = self.groups[kin]
        del group[bisect_left(group, entry)]
        if not group:
            del self.groups[kin]

    def before(self, entry: Entry) -> int:
        """How many of the line go before it."""
        return sum(bisect_left(group, entry) for group in self.groups.values())


class Walk:
    """One round's way through the line, best first.

    `out_of_turn`: jobs with a place of their own, which they take instead of the one in the line.
    """

    def __init__(self, line: Line, out_of_turn: Mapping[Entry, Entry] | None = None) -> None:
        self._line = line
        self._own = dict(out_of_turn or {})
        self._heap: list[tuple[Entry, int, Group, Kin | None]] = [
            (group[0], 0, group, kin) for kin, group in line.groups.items()
        ]
        self._heap += [(own, 0, [own], None) for own in self._own.values()]
        heapify(self._heap)
        self._over = False
        self.kin: Kin | None = None
        """Of the job at hand; None: it is out of turn, and like no other."""

    def __iter__(self) -> Iterator[str]:
        """Job ids."""
        while self._heap:
            entry, at, group, kin = self._heap[0]
            self._over = False
            if kin is None or entry not in self._own:
                self.kin = kin
                yield entry.job_id
            if self._over or at + 1 == len(group):
                heappop(self._heap)
            else:
                heapreplace(self._heap, (group[at + 1], at + 1, group, kin))

    def drop(self) -> None:
        """Leave out the rest of the group of the job at hand."""
        self._over = True

    def position(self, entry: Entry) -> int:
        """Of the job that stands there in the line, from 0."""
        entry = self._own.get(entry, entry)
        ahead = self._line.before(entry)
        for usual, own in self._own.items():
            ahead += (own < entry) - (usual < entry)
        return ahead
