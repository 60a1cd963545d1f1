"""Shortest remaining service first, by GPU time, as in the evaluations of Tiresias and Muri."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

from shared.schedulers.consolidated import consolidated, first_fit, free_of_type
from shared.schedulers.hooks import Allotment, Allotments, Hooks, Memory, Need, Placements
from shared.schedulers.placing import take
from shared.schedulers.view import CandidateJob, ClusterView


class Srsf(Hooks):
    """A job that first fit passes over is stopped; gangs are within one node, or on whole ones.

    A job whose rest is unknown comes after all others, in order of submission.
    """

    name: ClassVar[str] = "srsf"
    source: ClassVar[str] = "Gu et al., NSDI'19, shortest remaining service first"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left")

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        in_order = sorted(view.jobs, key=lambda job: (rest_gpu_s(job, view), job.submit_s))
        return [job.job_id for job in in_order]

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        allotted: Allotments = {}
        for gpu_type in view.gpus_of_type:
            jobs = [view.job_by_id[name] for name in ranked if name not in allotted]
            for job in fitting(view, gpu_type, jobs):
                allotted[job.job_id] = Allotment(gpu_type, job.gpus)
        return allotted

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        return consolidated(view, allotments)


def rest_gpu_s(job: CandidateJob, view: ClusterView) -> float:
    """Return the GPU time of the rest on the fastest type that is known; inf if it is unknown."""
    left, table = job.estimates.work_left, job.estimates.rates
    if left is None or table is None:
        return math.inf
    rates = [table.consolidated_rate(name, job.gpus) or 0.0 for name in view.gpus_of_type]
    fastest = max(rates, default=0.0)
    return left / fastest * job.gpus if fastest > 0 else math.inf


def fitting(
    view: ClusterView, gpu_type: str, jobs: Sequence[CandidateJob]
) -> Iterator[CandidateJob]:
    """Yield the jobs that first fit places on empty nodes of the type, in their order."""
    free = free_of_type(view, gpu_type)
    largest = max(free.values(), default=0)
    for job in jobs:
        placement = first_fit(free, largest, job.gpus) if job.may_use(gpu_type) else ()
        if placement:
            take(free, placement)
            yield job
