"""Time that a pool takes for a workload if each job starts as soon as its GPUs are free."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence

from simulator.workload.rows import WorkloadJob

_MILLI = 1000
"""GPUs are counted in thousandths: sums of fractions stay exact."""


def makespan_s(jobs: Sequence[WorkloadJob], capacity_gpus: float) -> float:
    """Return cluster seconds from the first submit to the last end.

    First come, first served, but a job that does not fit now is skipped. Only the sum of the GPUs
    counts, no nodes: a real pool is somewhat slower. No job may exceed the pool.
    """
    pool = _Pool(_milli(capacity_gpus))
    ordered = sorted(jobs, key=lambda job: (job.submit_s, job.job_key))
    for order, job in enumerate(ordered):
        pool.run_until(job.submit_s)
        pool.submit(order, job)
        pool.start(job.submit_s)
    pool.run_until(float("inf"))
    return pool.last_end_s - ordered[0].submit_s if ordered else 0.0


class _Pool:
    """Waiting jobs by size, so that only the oldest of each size is looked at."""

    __slots__ = ("_ends", "_free", "_waiting", "last_end_s")

    def __init__(self, capacity_milli: int) -> None:
        self._free = capacity_milli
        self._ends: list[tuple[float, int]] = []
        self._waiting: dict[int, deque[tuple[int, float]]] = {}
        self.last_end_s = float("-inf")

    def submit(self, order: int, job: WorkloadJob) -> None:
        queue = self._waiting.setdefault(_milli(job.gpus), deque())
        queue.append((order, job.duration_s))

    def run_until(self, limit_s: float) -> None:
        while self._ends and self._ends[0][0] <= limit_s:
            now_s = self._ends[0][0]
            while self._ends and self._ends[0][0] == now_s:
                self._free += heapq.heappop(self._ends)[1]
            self.start(now_s)

    def start(self, now_s: float) -> None:
        while (size := self._next_size()) is not None:
            queue = self._waiting[size]
            _, duration_s = queue.popleft()
            if not queue:
                del self._waiting[size]
            self._free -= size
            heapq.heappush(self._ends, (now_s + duration_s, size))
            self.last_end_s = max(self.last_end_s, now_s + duration_s)

    def _next_size(self) -> int | None:
        """Size of the oldest waiting job that fits."""
        fitting = ((queue[0][0], size) for size, queue in self._waiting.items())
        return min((pair for pair in fitting if pair[1] <= self._free), default=(0, None))[1]


def _milli(gpus: float) -> int:
    return round(gpus * _MILLI)
