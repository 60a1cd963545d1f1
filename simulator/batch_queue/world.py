"""Picks jobs one after another: the chosen one starts, or waits until it fits.

No job is stopped. While the chosen one waits, further jobs arrive, but none takes its turn; with
backfilling jobs start in the order of submission that should end before it can start, by their
requested times.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from simulator.batch_queue.jobs import PROCESSORS, BatchJob

Pick: TypeAlias = Callable[[Sequence[BatchJob], float, int], BatchJob]
"""Chooses one of the waiting jobs, by the time in s and the free processors."""
LEAST_RUN_S = 10.0
"""Run time below which a slowdown counts as for a job of this length."""


def bounded_slowdown(job: BatchJob, start_s: float) -> float:
    """Return the time from submission to end over the run time, at least 1."""
    waited_s = start_s - job.submit_s
    return max(1.0, (waited_s + job.run_s) / max(job.run_s, LEAST_RUN_S))


def mean_bounded_slowdown(jobs: Sequence[BatchJob], pick: Pick, backfills: bool = False) -> float:
    """Return the mean over the jobs of one sequence, by submission, on an empty cluster."""
    return BatchQueue(jobs, pick, backfills).run()


class BatchQueue:
    """One run of a sequence."""

    def __init__(self, jobs: Sequence[BatchJob], pick: Pick, backfills: bool) -> None:
        self._coming = list(reversed(jobs))
        self._pick = pick
        self._backfills = backfills
        self._count = len(jobs)
        self._now_s = jobs[0].submit_s
        self._waiting: list[BatchJob] = []
        self._ends: list[tuple[float, int]] = []
        """(end, processors), a heap."""
        self._expected: list[tuple[float, int, float]] = []
        """(expected end, processors, end) of jobs that have started."""
        self._free = PROCESSORS
        self._total = 0.0

    def run(self) -> float:
        while self._waiting or self._coming:
            while not self._waiting:
                self._advance()
            chosen = self._pick(self._waiting, self._now_s, self._free)
            while chosen.processors > self._free:
                if self._backfills:
                    self._backfill(chosen)
                self._advance()
            self._start(chosen)
        return self._total / self._count

    def _advance(self) -> None:
        """Go on to the next arrival or end, arrivals first."""
        arrives_s = self._coming[-1].submit_s if self._coming else math.inf
        if arrives_s <= (self._ends[0][0] if self._ends else math.inf):
            self._now_s = max(self._now_s, arrives_s)
            self._waiting.append(self._coming.pop())
            return
        end_s, processors = heapq.heappop(self._ends)
        self._now_s = max(self._now_s, end_s)
        self._free += processors

    def _start(self, job: BatchJob) -> None:
        self._waiting.remove(job)
        self._free -= job.processors
        self._total += bounded_slowdown(job, self._now_s)
        end_s = self._now_s + job.run_s
        heapq.heappush(self._ends, (end_s, job.processors))
        if self._backfills:
            self._expected.append((self._now_s + job.request_s, job.processors, end_s))

    def _backfill(self, chosen: BatchJob) -> None:
        """Start the jobs that should end before the chosen one can start."""
        self._expected = [entry for entry in self._expected if entry[2] > self._now_s]
        free, starts_s = self._free, self._now_s
        for end_s, processors, _ in sorted(self._expected):
            free, starts_s = free + processors, end_s
            if free >= chosen.processors:
                break
        for job in sorted(self._waiting):
            if job is chosen or job.processors > self._free:
                continue
            if self._now_s + job.request_s < starts_s:
                self._start(job)
