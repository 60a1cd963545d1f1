"""The waiting jobs, kept in the order of the last rank, so that a round need not sort them.

Jobs that any node treats alike are one equivalence class and stand in one group: once one of them
finds no room, the rest of the group is skipped in that round, however long it is.
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


class EquivalenceClass(NamedTuple):
    """The properties that the jobs of one group share."""

    tier: int
    shape: Shape
    bucket: int = 0
    """Bucket of the estimated run time under queue mode `easy`, see `bucket_of`."""
    alone: str = ""
    """Job id of one that avoids nodes or is in backoff: a class of its own."""


class QueueKey(NamedTuple):
    """The place of a job in the queue: keys compare in its order."""

    has_no_reservation: bool
    tier: int
    is_in_turn: bool
    negated_score: float
    """The score, negated; `UNRANKED` without one."""
    submitted_at: int
    job_id: str


Group: TypeAlias = list[QueueKey]


def bucket_of(run_ms: int | None) -> int:
    """Return the bucket of an estimate; those in one bucket differ by less than 4 times."""
    return NO_ESTIMATE if run_ms is None else run_ms.bit_length() // 2


def least_ms(bucket: int) -> int:
    """Return the shortest estimate that a bucket may hold."""
    return 1 << max(0, 2 * bucket - 1)


@dataclass(slots=True)
class Queue:
    """Groups of waiting jobs: none is empty, each is in order."""

    groups: dict[EquivalenceClass, Group] = field(default_factory=dict)

    def add(self, equivalence_class: EquivalenceClass, key: QueueKey) -> None:
        group = self.groups.get(equivalence_class)
        if group is None:
            self.groups[equivalence_class] = [key]
        else:
            insort(group, key)

    def remove(self, equivalence_class: EquivalenceClass, key: QueueKey) -> None:
        group = self.groups[equivalence_class]
        del group[bisect_left(group, key)]
        if not group:
            del self.groups[equivalence_class]

    def before(self, key: QueueKey) -> int:
        """Return how many entries go before this one."""
        return sum(bisect_left(group, key) for group in self.groups.values())


class QueueScan:
    """One pass over the queue, best first.

    `out_of_turn`: jobs whose place differs from their usual one, as usual key -> key of this order.
    """

    def __init__(
        self, queue: Queue, out_of_turn: Mapping[QueueKey, QueueKey] | None = None
    ) -> None:
        self._queue = queue
        self._own = dict(out_of_turn or {})
        self._heap: list[tuple[QueueKey, int, Group, EquivalenceClass | None]] = [
            (group[0], 0, group, equivalence_class)
            for equivalence_class, group in queue.groups.items()
        ]
        self._heap += [(own, 0, [own], None) for own in self._own.values()]
        heapify(self._heap)
        self._over = False
        self.equivalence_class: EquivalenceClass | None = None
        """Class of the job at hand; None: it is out of turn, and like no other."""

    def __iter__(self) -> Iterator[str]:
        """Yield job ids."""
        while self._heap:
            key, at, group, equivalence_class = self._heap[0]
            self._over = False
            if equivalence_class is None or key not in self._own:
                self.equivalence_class = equivalence_class
                yield key.job_id
            if self._over or at + 1 == len(group):
                heappop(self._heap)
            else:
                heapreplace(self._heap, (group[at + 1], at + 1, group, equivalence_class))

    def drop(self) -> None:
        """Skip the rest of the group of the job at hand."""
        self._over = True

    def position(self, key: QueueKey) -> int:
        """Return the number of jobs before that place in this order."""
        key = self._own.get(key, key)
        ahead = self._queue.before(key)
        for usual, own in self._own.items():
            ahead += (own < key) - (usual < key)
        return ahead
