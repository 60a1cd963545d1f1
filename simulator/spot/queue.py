"""A queue of jobs by size: equal jobs are tried once, however many of them wait."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from simulator.spot.jobs import SpotTraceJob


class JobSize(NamedTuple):
    """Jobs of one size are placed alike."""

    gpus_per_worker: int
    workers: int
    guarantee_h: int


class Waiting(NamedTuple):
    """A job in the queue; by submission, then by number."""

    submit_s: float
    number: int
    job: SpotTraceJob
    remaining_s: float
    since_s: float
    """When it came into the queue, at its submission or its eviction."""


Order = Callable[[JobSize, Waiting], tuple[float, ...]]


def by_submission(size: JobSize, head: Waiting) -> tuple[float, ...]:
    return head.submit_s, head.number


def largest_first(size: JobSize, head: Waiting) -> tuple[float, ...]:
    """Return the published order of guaranteed jobs: most GPUs of a worker, then submission."""
    return -size.gpus_per_worker, head.submit_s, head.number


def largest_workers_first(size: JobSize, head: Waiting) -> tuple[float, ...]:
    """Return the published order of spot jobs: most GPUs of a worker, then fewest workers."""
    return -size.gpus_per_worker, size.workers, head.submit_s, head.number


def smallest_first(size: JobSize, head: Waiting) -> tuple[float, ...]:
    return size.gpus_per_worker * size.workers, head.submit_s, head.number


@dataclass(slots=True)
class SizedQueue:
    """Waiting jobs by size, each by submission; with `blocks` none passes one that cannot start."""

    order: Order
    blocks: bool
    _sizes: dict[JobSize, list[Waiting]] = field(default_factory=dict)

    def add(self, waiting: Waiting) -> None:
        job = waiting.job
        size = JobSize(job.gpus_per_worker, job.workers, job.guarantee_h)
        insort(self._sizes.setdefault(size, []), waiting)

    def __len__(self) -> int:
        return sum(map(len, self._sizes.values()))

    def waiting(self) -> list[Waiting]:
        return [one for own in self._sizes.values() for one in own]

    def demand_gpus(self) -> dict[int, int]:
        """Return the GPUs that wait by organisation."""
        gpus: dict[int, int] = {}
        for one in self.waiting():
            gpus[one.job.organisation] = gpus.get(one.job.organisation, 0) + one.job.gpus
        return gpus

    def oldest_since_s(self) -> float | None:
        """Return when the job that has waited longest came into the queue; None if it is empty."""
        return min((one.since_s for one in self.waiting()), default=None)

    def start_all(self, start: Callable[[Waiting], bool]) -> None:
        """Start jobs in order; a size of which one could not start is passed over from then on.

        A larger gang of the same size of worker fits no better, so it is passed over as well.
        """
        failed: set[JobSize] = set()
        while True:
            able = [size for size in self._sizes if not _fails(size, failed)]
            if not able:
                return
            size = min(able, key=lambda size: self.order(size, self._sizes[size][0]))
            head = self._sizes[size][0]
            if start(head):
                self._sizes[size].remove(head)
                if not self._sizes[size]:
                    del self._sizes[size]
            elif self.blocks:
                return
            else:
                failed.add(size)


def _fails(size: JobSize, failed: set[JobSize]) -> bool:
    """Return whether a job that is no larger, and guaranteed no longer, could not start."""
    return any(
        size.gpus_per_worker >= own.gpus_per_worker
        and size.workers >= own.workers
        and size.guarantee_h >= own.guarantee_h
        for own in failed
    )
