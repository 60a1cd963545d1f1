"""AFS (Hwang et al., NSDI'21): the next GPU by its worth for a shorter and a longer job."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from shared.schedulers.hooks import Allotment, Allotments, Decides, Hooks, Memory, Need
from shared.schedulers.view import CandidateJob, ClusterView


class Afs(Hooks):
    """AFS-L: work and rates are known. GPUs are of one type, the first one.

    A job without them gets its least number of GPUs, in order of submission, before all others:
    nothing says what more would bring.
    """

    name: ClassVar[str] = "afs"
    source: ClassVar[str] = "Hwang et al., NSDI'21"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left")
    decides: ClassVar[tuple[Decides, ...]] = ("gpus",)

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        gpu_type, free = next(iter(view.gpus_of_type.items()))
        counts: dict[str, int] = {}
        jobs: list[ScalingJob] = []
        for name in ranked:
            scaling = scaling_of(view.job_by_id[name], gpu_type)
            if scaling is not None:
                jobs.append(scaling)
                continue
            least = max(1, view.job_by_id[name].min_gpus)
            if least <= free:
                counts[name] = least
                free -= least
        counts.update(share(jobs, free))
        return {name: Allotment(gpu_type, gpus) for name, gpus in counts.items() if gpus > 0}


class ScalingJob:
    """A job with its rate by number of GPUs, `rates[0]` = 0, and how many it has so far."""

    def __init__(self, job_id: str, left: float, rates: Sequence[float], least: int = 1) -> None:
        self.job_id = job_id
        self.left = left
        self.rates = rates
        self.least = least
        self.gpus = 0

    @property
    def step(self) -> int:
        """GPUs that the job takes next: its least number at first, then one."""
        return 1 if self.gpus else self.least

    @property
    def is_full(self) -> bool:
        return self.gpus + self.step >= len(self.rates)

    @property
    def rate(self) -> float:
        return self.rates[self.gpus]

    @property
    def next_rate(self) -> float:
        return self.rates[self.gpus + self.step]

    @property
    def length_s(self) -> tuple[float, float]:
        """The rest at the present rate; of jobs without GPUs, the rest at the least number."""
        now_s = self.left / self.rate if self.rate > 0 else math.inf
        return now_s, self.left / max(self.rates[self.least], 1e-12)


def scaling_of(job: CandidateJob, gpu_type: str) -> ScalingJob | None:
    """Return the job with its rates up to the last known number; None where too few are known."""
    table, left = job.estimates.rates, job.estimates.work_left
    if table is None or left is None:
        return None
    rates = [0.0]
    for gpus in range(1, job.max_gpus + 1):
        rate = table.consolidated_rate(gpu_type, gpus)
        if rate is None and gpus >= job.min_gpus:
            break
        rates.append(rate or 0.0)
    least = max(1, job.min_gpus)
    return ScalingJob(job.job_id, left, rates, least) if len(rates) > least else None


def share(jobs: Sequence[ScalingJob], gpus: int) -> dict[str, int]:
    """Return the GPUs of each job after a tournament for each of them."""
    growing = [job for job in jobs if not job.is_full]
    while gpus > 0:
        growing = [job for job in growing if not job.is_full and job.step <= gpus]
        if not growing:
            break
        growing.sort(key=lambda job: (*job.length_s, job.job_id))
        best = growing[0]
        for job in growing[1:]:
            best = winner(best, job)
        gpus -= best.step
        best.gpus += best.step
    return {job.job_id: job.gpus for job in jobs}


def winner(one: ScalingJob, other: ScalingJob) -> ScalingJob:
    """Return the job to which the next GPU goes.

    The longer one gets it if that raises its rate by more, relative to the rate then, than it would
    raise the shorter one's relative to its rate now: the shorter one ends first, and its GPUs go to
    the longer one.
    """
    shorter, longer = sorted((one, other), key=lambda job: job.length_s)
    if shorter.rate <= 0 or longer.next_rate <= 0:
        return shorter
    lost = (shorter.next_rate - shorter.rate) / shorter.rate
    gained = (longer.next_rate - longer.rate) / longer.next_rate
    return longer if gained > lost else shorter
