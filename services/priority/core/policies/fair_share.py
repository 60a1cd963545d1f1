"""Fair shares of tenants: their use, Slurm's factor, and the order of `fair_share`."""

from __future__ import annotations

import heapq
import math
from itertools import pairwise

import numpy as np

from services.priority.core.history.distributions import Floats
from services.priority.core.queue.queue_view import QueueView
from services.priority.core.queue.sorting import by_submission
from services.priority.core.queue.table import COLUMN
from services.priority.core.state import PriorityState

UNKNOWN_RUN_S = 600.0
"""Expected run in cluster seconds of a job without an estimate; it only interleaves tenants."""


def used_gpu_s(queue: PriorityState, now: int) -> dict[str, float]:
    """Return the decayed wall GPU-seconds of each tenant, running jobs included."""
    half_life_s = queue.half_life_wall_s
    used = {tenant: usage.decayed(now, half_life_s) for tenant, usage in queue.usage.items()}
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


def shares(queue: PriorityState, now: int) -> dict[str, float]:
    """Return the used GPU-seconds of each tenant over its weight."""
    used = used_gpu_s(queue, now)
    return {tenant: value / queue.weights.get(tenant, 1.0) for tenant, value in used.items()}


def factors(queue: PriorityState, view: QueueView, now: int) -> Floats:
    """Return Slurm's fair-share factors, [n]: 2^(-share of use / share of weight) of the tenant.

    Shares are among the tenants that ever had a job in this pool.
    """
    used = used_gpu_s(queue, now)
    total = sum(used.values())
    weights = [queue.weights.get(tenant, 1.0) for tenant in queue.tenants]
    total_weight = sum(weights)
    by_tenant = [
        0.5 ** ((used.get(tenant, 0.0) / total) / (weight / total_weight)) if total else 1.0
        for tenant, weight in zip(queue.tenants, weights, strict=True)
    ]
    return np.array(by_tenant, np.float64)[view.tenant]


def order_places(queue: PriorityState, view: QueueView, now: int, most: int) -> list[int]:
    """Return up to `most` places: in each class the tenant that used least goes first.

    Use decays with a half-life as in Slurm's PriorityDecayHalfLife. Each job taken into the order
    counts at once with its expected use, so tenants alternate instead of going one after another.
    """
    share = shares(queue, now)
    names = list(queue.tenants)
    queues = tenant_queues(view)
    heap = [
        (tier, share.get(names[tenant], 0.0), float(view.submit_s[places[0]]), names[tenant], 0)
        for (tier, tenant), places in queues.items()
    ]
    heapq.heapify(heap)
    order: list[int] = []
    while heap and len(order) < most:
        tier, used, _, name, index = heapq.heappop(heap)
        places = queues[tier, queue.tenants[name]]
        job = places[index]
        order.append(job)
        if index + 1 < len(places):
            used += expected_use(view, job, queue.time_scale) / queue.weights.get(name, 1.0)
            submit = float(view.submit_s[places[index + 1]])
            heapq.heappush(heap, (tier, used, submit, name, index + 1))
    return order


def tenant_queues(view: QueueView) -> dict[tuple[float, int], list[int]]:
    """Return the places of the waiting jobs by (tier, tenant), each list by submission."""
    places = np.array(by_submission(view), np.intp)
    places = places[np.lexsort((view.tenant[places], view.tier[places]))]
    tiers, tenants = view.tier[places], view.tenant[places]
    begins = np.flatnonzero((np.diff(tiers) != 0) | (np.diff(tenants) != 0)) + 1
    ordered: list[int] = places.tolist()
    bounds = [0, *begins.tolist(), len(ordered)]
    return {
        (float(tiers[begin]), int(tenants[begin])): ordered[begin:end]
        for begin, end in pairwise(bounds)
        if end > begin
    }


def expected_use(view: QueueView, job: int, time_scale: float) -> float:
    """Return the wall GPU-seconds that the job would add, by its user's limit or a constant."""
    walltime_s = float(view.walltime_s[job])
    run_s = UNKNOWN_RUN_S if math.isnan(walltime_s) else walltime_s
    return max(float(view.gpus[job]), 0.01) * run_s / time_scale
