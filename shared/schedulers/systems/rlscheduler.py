"""RLScheduler (Zhang et al., SC'20): a trained network chooses the next job of the queue."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np

from shared.schedulers import rlscheduler_weights
from shared.schedulers.hooks import Decides, Hooks, Memory, Need
from shared.schedulers.job_network import Floats, Limits, features, scores, window
from shared.schedulers.view import CandidateJob, ClusterView

LIMITS = Limits(*rlscheduler_weights.LIMITS)


class RlScheduler(Hooks):
    """Jobs go by the score of the network, and the first that does not fit blocks the rest.

    The expected run time stands for the requested one; where it is unknown its feature is full. Of
    more than 128 waiting jobs the shortest and the smallest are scored, and the others follow by
    submission. Nothing is stopped.
    """

    name: ClassVar[str] = "rlscheduler"
    source: ClassVar[str] = "Zhang et al., SC'20, trained on lublin_256"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left")
    decides: ClassVar[tuple[Decides, ...]] = ("order",)
    passes_over: ClassVar[bool] = False

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        running = [job.job_id for job in view.jobs if job.is_running]
        waiting = [job for job in view.jobs if not job.is_running]
        if not waiting:
            return running
        request_s = np.array([expected_s(job, view) for job in waiting])
        gpus = np.array([job.gpus for job in waiting], np.float64)
        rows = window(request_s, gpus)
        wait_s = np.array([view.now_s - job.submit_s for job in waiting])
        limits = LIMITS._replace(gpus=float(max(1, sum(view.gpus_of_type.values()))))
        free = free_gpus(view)
        own = features(wait_s[rows], request_s[rows], gpus[rows], gpus[rows] <= free, limits)
        order = rows[np.argsort(-scores(weights(), own), kind="stable")].tolist()
        scored = set(order)
        rest = [number for number in range(len(waiting)) if number not in scored]
        rest.sort(key=lambda number: (waiting[number].submit_s, waiting[number].job_id))
        return [*running, *(waiting[n].job_id for n in [*order, *rest])]


@lru_cache(maxsize=1)
def weights() -> Floats:
    return np.array([float(word) for word in rlscheduler_weights.WEIGHTS.split()])


def expected_s(job: CandidateJob, view: ClusterView) -> float:
    """Return the expected run time on the fastest type; the longest that is known without one."""
    table, left = job.estimates.rates, job.estimates.work_left
    if table is None or left is None:
        return LIMITS.request_s
    rates = [table.consolidated_rate(name, job.gpus) or 0.0 for name in view.gpus_of_type]
    fastest = max(rates, default=0.0)
    return left / fastest if fastest > 0 else LIMITS.request_s


def free_gpus(view: ClusterView) -> int:
    """Return the most free GPUs of one type."""
    free = dict(view.gpus_of_type)
    for job in view.jobs:
        for node_id, gpus in job.placement:
            free[view.node_by_id[node_id].gpu_type] -= gpus
    return max(free.values(), default=0)
