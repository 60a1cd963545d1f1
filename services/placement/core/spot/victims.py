"""Spot jobs that yield to a guaranteed gang: the least cost in guarantees and lost work.

After Duan et al. (GFS, ASPLOS'26). Three rules differ from the released code: every node that could
hold a worker is compared, not only those with the fewest GPUs without guaranteed jobs; a job is
spared in order of the work that it would lose since its checkpoint, dearest first, while enough
remains without it; and a gang gets all its nodes or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from services.placement.core.spot.places import Scores, SpotNodes, place

LOST_WORK_WEIGHT = 5.0
"""Published weight of lost work, as a part of the GPU time of the pool, against failures."""


class RunningSpot(NamedTuple):
    """A spot job on GPUs; `lost_gpu_s` is what it loses if it stops now, with its restart."""

    job_id: str
    gpus_by_row: tuple[tuple[int, int], ...]
    lost_gpu_s: float

    def gpus_on(self, row: int) -> int:
        return sum(gpus for own, gpus in self.gpus_by_row if own == row)


@dataclass(frozen=True, slots=True)
class EvictionCosts:
    """Periods of guarantees so far, and the GPU time that lost work is measured by."""

    failed: int
    kept: int
    pool_gpu_s: float

    def of(self, victims: Iterable[RunningSpot]) -> float:
        """Return the failure rate with these evictions, and their lost work."""
        listed = list(victims)
        number, lost_gpu_s = len(listed), sum(job.lost_gpu_s for job in listed)
        rate = (self.failed + number) / max(1, self.failed + self.kept + number)
        return rate + LOST_WORK_WEIGHT * lost_gpu_s / self.pool_gpu_s


class Preemption(NamedTuple):
    """A row for each worker, and the jobs that stop for them."""

    rows: list[int]
    victims: list[str]


class Evictions(NamedTuple):
    """A row, and the jobs of it that stop."""

    row: int
    victims: list[RunningSpot]


JobsByRow = Mapping[int, list[RunningSpot]]
Choose = Callable[[SpotNodes, int, JobsByRow], Evictions | None]
"""From nodes, the GPUs of a worker and spot jobs by row to a node and the jobs that make room."""


def needed(free: int, gpus: int, row: int, jobs: Iterable[RunningSpot]) -> list[RunningSpot]:
    """Return the jobs of one node without which `gpus` are not free there.

    The dearest is spared first; of equals the larger one, then by id.
    """
    by_cost = sorted(jobs, key=lambda job: (-job.lost_gpu_s, -job.gpus_on(row), job.job_id))
    remaining = free + sum(job.gpus_on(row) for job in by_cost)
    victims = []
    for job in by_cost:
        if remaining - job.gpus_on(row) >= gpus:
            remaining -= job.gpus_on(row)
        else:
            victims.append(job)
    return victims


def first_victims(nodes: SpotNodes, gpus: int, jobs: JobsByRow) -> Evictions | None:
    """Return the first node that evictions make room on, and its jobs in order of start."""
    able = np.flatnonzero(nodes.free + nodes.spot >= gpus)
    if not len(able):
        return None
    row, victims = int(able[0]), []
    free = int(nodes.free[row])
    for job in jobs.get(row, ()):
        if free >= gpus:
            break
        victims.append(job)
        free += job.gpus_on(row)
    return Evictions(row, victims)


@dataclass(frozen=True, slots=True)
class LeastCost:
    """Compares all nodes; of equal costs the one with the fewest GPUs without guaranteed jobs."""

    costs: EvictionCosts

    def __call__(self, nodes: SpotNodes, gpus: int, jobs: JobsByRow) -> Evictions | None:
        best: tuple[float, int, int] | None = None
        chosen: Evictions | None = None
        for row in np.flatnonzero(nodes.free + nodes.spot >= gpus).tolist():
            victims = needed(int(nodes.free[row]), gpus, row, jobs.get(row, ()))
            open_gpus = int(nodes.free[row] + nodes.spot[row])
            key = (self.costs.of(victims), open_gpus, row)
            if best is None or key < best:
                best, chosen = key, Evictions(row, victims)
        return chosen


def preempt(
    nodes: SpotNodes, workers: int, gpus: int, jobs: JobsByRow, scores: Scores, choose: Choose
) -> Preemption | None:
    """Return places for all workers of a guaranteed gang with the spot jobs that yield, or None.

    `jobs`: spot jobs by row. Nothing that is passed is changed. Later workers use what earlier
    victims left free elsewhere.
    """
    if int(((nodes.free + nodes.spot) // gpus).sum()) < workers:
        return None
    trial, left = nodes.copy(), {row: list(own) for row, own in jobs.items()}
    rows: list[int] = []
    victims: list[str] = []
    for _ in range(workers):
        row = place(trial, gpus, False, scores)
        if row is None:
            evictions = choose(trial, gpus, left)
            if evictions is None:
                return None
            row = evictions.row
            for job in evictions.victims:
                victims.append(job.job_id)
                remove(trial, left, job)
        trial.take(row, gpus, is_spot=False)
        rows.append(row)
    return Preemption(rows, victims)


def remove(nodes: SpotNodes, jobs: dict[int, list[RunningSpot]], job: RunningSpot) -> None:
    """Free the GPUs of a spot job on all its rows."""
    for row, gpus in job.gpus_by_row:
        nodes.take(row, -gpus, is_spot=True)
        jobs[row] = [other for other in jobs[row] if other.job_id != job.job_id]
