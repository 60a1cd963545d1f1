"""The jobs on GPUs in the order in which rank stops them, kept from ranking to ranking.

A policy with stable keys sees of a job that runs no more than the bin of what it attained. So only
jobs whose row has changed, and those that have come to the next bin, are looked at again.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.contracts.ranking import RUNNING_MOST, Ranked

STALE_MOST = 4096
"""Where nothing is ranked, nothing clears the stale jobs: beyond this the order is dropped."""


class RunningPlace(NamedTuple):
    """A job's place: jobs compare by their score, the lowest first, and then by id."""

    score: float
    job_id: str
    ranked: Ranked
    until: float
    """ms before which the score holds, unless the job's row changes."""


@dataclass(slots=True, eq=False)
class RunningOrder:
    """A cache beside the queue's state: it can be rebuilt at any moment."""

    key: object = None
    """Everything that scores depend on besides the jobs; None: nothing is kept."""
    at: int = 0
    """ms of the last ranking: of earlier moments the order says nothing."""
    jobs: dict[str, RunningPlace] = field(default_factory=dict)
    order: list[RunningPlace] = field(default_factory=list)
    stale: dict[str, None] = field(default_factory=dict)
    """Jobs that may have begun or ceased to run, or whose row has changed."""
    _until: float = math.inf
    _lowest: tuple[Ranked, ...] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the cache out of snapshots."""
        return (RunningOrder, ())

    def mark(self, job_id: str) -> None:
        """Make a job stale."""
        if self.key is None:
            return
        self.stale[job_id] = None
        if len(self.stale) > STALE_MOST:
            self.clear()

    def clear(self) -> None:
        if self.key is not None:
            self.begin(None, 0, ())

    def begin(self, key: object, at: int, running: Iterable[str]) -> None:
        """Start anew with every running job stale."""
        self.key, self.at = key, at
        self.jobs.clear()
        self.order.clear()
        self.stale = dict.fromkeys(running)
        self._until, self._lowest = math.inf, None

    def take_stale(self, now: int) -> list[str]:
        """Remove the jobs that have to be looked at again, and return their ids."""
        self.at = now
        if now >= self._until:
            self.stale.update([(job.job_id, None) for job in self.order if job.until <= now])
        if not self.stale:
            return []
        names, self.stale = list(self.stale), {}
        for name in names:
            if (job := self.jobs.pop(name, None)) is not None:
                del self.order[bisect_left(self.order, job)]
        self._until = min([job.until for job in self.order], default=math.inf)
        self._lowest = None
        return names

    def insert(self, jobs: Iterable[RunningPlace]) -> None:
        self._lowest = None
        for job in jobs:
            self.jobs[job.job_id] = job
            insort(self.order, job)
            self._until = min(self._until, job.until)

    def lowest(self) -> tuple[Ranked, ...]:
        """Return the first jobs that rank would stop; the same tuple as long as nothing changes."""
        if self._lowest is None:
            self._lowest = tuple([job.ranked for job in self.order[:RUNNING_MOST]])
        return self._lowest
