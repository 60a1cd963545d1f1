"""Policies of a queue of batch jobs: the heuristics of RLScheduler's evaluation, and its network.

The released WFP3 and UNICEP take the wait of a job that has not started from its start, which is -1
then. They are left out: their published numbers are those of the defect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from shared.schedulers.job_network import Floats, Limits, features, scores, window
from simulator.batch_queue.jobs import PROCESSORS, BatchJob
from simulator.batch_queue.world import Pick

LEAST = 0.1
"""Takes the place of a time of 0 in a logarithm."""


def fcfs(job: BatchJob) -> tuple[float, ...]:
    return (job.submit_s,)


def sjf(job: BatchJob) -> tuple[float, ...]:
    return (job.request_s, job.submit_s)


def f1(job: BatchJob) -> tuple[float, ...]:
    """Carastan-Santos and de Camargo (SC'17); the time of submission is that of the log."""
    size = math.log10(job.request_s or LEAST) * job.processors
    return (size + 870.0 * math.log10(job.submit_s or LEAST),)


def least(key: Callable[[BatchJob], tuple[float, ...]]) -> Pick:
    """Return the policy that picks the job with the least key, of equals the first to come."""

    def pick(waiting: Sequence[BatchJob], now_s: float, free: int) -> BatchJob:
        return min(waiting, key=key)

    return pick


def by_network(weights: Floats, limits: Limits) -> Pick:
    """Return the policy that picks the job with the highest score of the network."""

    def pick(waiting: Sequence[BatchJob], now_s: float, free: int) -> BatchJob:
        if len(waiting) == 1:
            return waiting[0]
        table = np.array(waiting, np.float64)
        rows = window(table[:, 2], table[:, 3])
        table = table[rows]
        fits = table[:, 3] <= free
        own = features(now_s - table[:, 0], table[:, 2], table[:, 3], fits, limits)
        return waiting[int(rows[int(scores(weights, own).argmax())])]

    return pick


def limits_of(jobs: Sequence[BatchJob]) -> Limits:
    """Return the limits of a log: its longest request, and the processors of its machine."""
    return Limits(max(job.request_s for job in jobs), float(PROCESSORS))
