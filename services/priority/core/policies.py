"""Classic orders of a queue: pure functions from a view to the jobs, best first."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from services.priority.core.state import Queue
from shared.contracts.jobs import PRIORITY_CLASSES
from shared.contracts.ranking import QueueEntry

CLASS_ORDER = {name: place for place, name in enumerate(PRIORITY_CLASSES)}
UNKNOWN_RUN_S = 600.0
"""Expected run in cluster seconds of a job without an estimate; it only interleaves tenants."""


@dataclass(frozen=True, slots=True)
class Order:
    """Jobs best first, and the numbers that decided, by name."""

    jobs: list[QueueEntry]
    terms: dict[str, float]


Policy = Callable[[Queue, int], Order]


def by_submission(entry: QueueEntry) -> tuple[int, str]:
    return entry.submitted_at, entry.job_id


def by_class(entry: QueueEntry) -> tuple[int, int, str]:
    return CLASS_ORDER[entry.priority_class], entry.submitted_at, entry.job_id


def fcfs(queue: Queue, now: int) -> Order:
    """First come, first served, within the classes that placement keeps apart anyway."""
    return Order(sorted(queue.waiting.values(), key=by_submission), {})


def priority_class(queue: Queue, now: int) -> Order:
    """Highest class first, first come first served inside a class."""
    return Order(sorted(queue.waiting.values(), key=by_class), {})


def shares(queue: Queue, now: int) -> dict[str, float]:
    """Decayed GPU-seconds of each tenant over its weight, what runs now included."""
    half_life_s = queue.half_life_wall_s
    used = {tenant: usage.now(now, half_life_s) for tenant, usage in queue.usage.items()}
    for job in queue.jobs.values():
        if job.phase == "running":
            used[job.tenant] = used.get(job.tenant, 0.0) + job.gpus * (now - job.since) / 1000
    return {tenant: value / queue.weights.get(tenant, 1.0) for tenant, value in used.items()}


def fair_share(queue: Queue, now: int) -> Order:
    """The tenant that used least goes first, in each class.

    Use decays with a half-life as in Slurm's PriorityDecayHalfLife. Each job taken into the order
    counts at once with its expected use, so tenants alternate instead of going one after another.
    """
    share = shares(queue, now)
    lines: dict[tuple[int, str], list[QueueEntry]] = {}
    for entry in sorted(queue.waiting.values(), key=by_class):
        line = lines.setdefault((CLASS_ORDER[entry.priority_class], entry.tenant), [])
        line.append(entry)
    heap = [
        (rank, share.get(tenant, 0.0), line[0].submitted_at, tenant, 0)
        for (rank, tenant), line in lines.items()
    ]
    heapq.heapify(heap)
    order: list[QueueEntry] = []
    while heap:
        rank, used, _, tenant, place = heapq.heappop(heap)
        line = lines[rank, tenant]
        entry = line[place]
        order.append(entry)
        if place + 1 < len(line):
            used += expected_use(entry, queue.time_scale) / queue.weights.get(tenant, 1.0)
            heapq.heappush(heap, (rank, used, line[place + 1].submitted_at, tenant, place + 1))
    return Order(
        order, {f"share_gpu_s.{tenant}": round(v, 3) for tenant, v in sorted(share.items())}
    )


def expected_use(entry: QueueEntry, time_scale: float) -> float:
    """Wall GPU-seconds that the job would add, by its user's estimate or a constant."""
    return max(entry.gpus, 0.01) * (entry.walltime_s or UNKNOWN_RUN_S) / time_scale


POLICIES: dict[str, Policy] = {
    "fcfs": fcfs,
    "priority_class": priority_class,
    "fair_share": fair_share,
}
