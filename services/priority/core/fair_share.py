"""Fair shares of tenants: what each has used, Slurm's factor of it, and an order of its own."""

from __future__ import annotations

import heapq
import math
from itertools import pairwise

import numpy as np

from services.priority.core.queue_view import QueueView
from services.priority.core.sorting import by_submission
from services.priority.core.state import Queue
from services.priority.core.table import COLUMN, Floats

UNKNOWN_RUN_S = 600.0
"""Expected run in cluster seconds of a job without an estimate; it only interleaves tenants."""


def used_gpu_s(queue: Queue, now: int) -> dict[str, float]:
    """Decayed GPU-seconds of each tenant, wall, what runs now included."""
    half_life_s = queue.half_life_wall_s
    used = {tenant: usage.now(now, half_life_s) for tenant, usage in queue.usage.items()}
    held, since, tenant = (
        queue.table.values[COLUMN[name]] for name in ("held_gpus", "since_ms", "tenant")
    )
    rows = np.flatnonzero(since)
    running = held[rows] * (now - since[rows]) / 1000
    sums = np.bincount(tenant[rows].astype(np.intp), running, len(queue.tenants)).tolist()
    for name, number in queue.tenants.items():
        if sums[number]:
            used[name] = used.get(name, 0.0) + sums[number]
    return used


def shares(queue: Queue, now: int) -> dict[str, float]:
    """Used GPU-seconds of each tenant over its weight."""
    used = used_gpu_s(queue, now)
    return {tenant: value / queue.weights.get(tenant, 1.0) for tenant, value in used.items()}


def factors(queue: Queue, view: QueueView, now: int) -> Floats:
    """Slurm's fair-share factor of each job's tenant: 2^(-share of use / share of weight), [n].

    Shares are among the tenants that ever had a job in this pool.
    """
    used = used_gpu_s(queue, now)
    total = sum(used.values())
    weights = [queue.weights.get(tenant, 1.0) for tenant in queue.tenants]
    everyone = sum(weights)
    found = [
        0.5 ** ((used.get(tenant, 0.0) / total) / (weight / everyone)) if total else 1.0
        for tenant, weight in zip(queue.tenants, weights, strict=True)
    ]
    return np.array(found, np.float64)[view.tenant]


def order(queue: Queue, view: QueueView, now: int, most: int) -> list[int]:
    """The tenant that used least goes first, in each class; at most so many places of the view.

    Use decays with a half-life as in Slurm's PriorityDecayHalfLife. Each job taken into the order
    counts at once with its expected use, so tenants alternate instead of going one after another.
    """
    share = shares(queue, now)
    names = list(queue.tenants)
    lines = lines_of(view)
    heap = [
        (tier, share.get(names[tenant], 0.0), float(view.submit_s[line[0]]), names[tenant], 0)
        for (tier, tenant), line in lines.items()
    ]
    heapq.heapify(heap)
    found: list[int] = []
    while heap and len(found) < most:
        tier, used, _, name, place = heapq.heappop(heap)
        line = lines[tier, queue.tenants[name]]
        job = line[place]
        found.append(job)
        if place + 1 < len(line):
            used += expected_use(view, job, queue.time_scale) / queue.weights.get(name, 1.0)
            submit = float(view.submit_s[line[place + 1]])
            heapq.heappush(heap, (tier, used, submit, name, place + 1))
    return found


def lines_of(view: QueueView) -> dict[tuple[float, int], list[int]]:
    """Places of the waiting jobs in the view by (tier, tenant), each line by submission."""
    places = np.array(by_submission(view), np.intp)
    places = places[np.lexsort((view.tenant[places], view.tier[places]))]
    tiers, tenants = view.tier[places], view.tenant[places]
    begins = np.flatnonzero((np.diff(tiers) != 0) | (np.diff(tenants) != 0)) + 1
    whole: list[int] = places.tolist()
    bounds = [0, *begins.tolist(), len(whole)]
    return {
        (float(tiers[begin]), int(tenants[begin])): whole[begin:end]
        for begin, end in pairwise(bounds)
        if end > begin
    }


def expected_use(view: QueueView, job: int, time_scale: float) -> float:
    """Wall GPU-seconds that the job would add, by its user's estimate or a constant."""
    walltime_s = float(view.walltime_s[job])
    run_s = UNKNOWN_RUN_S if math.isnan(walltime_s) else walltime_s
    return max(float(view.gpus[job]), 0.01) * run_s / time_scale
