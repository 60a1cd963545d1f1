"""Rounds that realise shares of time, as in Gavel (OSDI'20), section 5.

In a round jobs go by share over the fraction of the type's time that they have had in the last half
hour or so; a job that has had none goes before all others. GPUs that no share claims go to
whichever job fits, so none is idle beside a waiting job.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

import numpy as np

from shared.schedulers.hooks import Allotment, Allotments, Hooks, Memory
from shared.schedulers.time_shares import Floats
from shared.schedulers.view import CandidateJob, ClusterView

Shares: TypeAlias = dict[str, dict[str, float]]
"""Share of time by job and type; a type that is missing has none."""

NEVER_RAN = 1e9
RESET_S = 1920.0
"""Least time over which the time of jobs is compared with their shares, as in the released
simulator."""


class TimeShareRounds(Hooks, ABC):
    """A scheduler of `shares`; its memory has them, and the time that each job had since.

    `is_blind`: types are taken in an order drawn for each round, as speeds play no role.
    `recompute_s`: shares are computed when jobs or GPUs have changed, but not earlier than so long
    after the last time; a job that came since waits for the next ones.
    """

    is_blind: ClassVar[bool] = False
    recompute_s: ClassVar[float] = 0.0

    @abstractmethod
    def shares(self, view: ClusterView, memory: Memory) -> Shares:
        """Return the share of each job and type."""

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        note_time(view, memory)
        basis = [[job.job_id for job in view.jobs], dict(view.gpus_of_type)]
        is_stale = basis != memory.get("basis")
        computed_s = memory.get("computed_s", 0.0)
        if is_stale and (computed_s == 0.0 or view.now_s - computed_s >= self.recompute_s):
            reset_s = memory.get("reset_s", 0.0)
            if reset_s == 0.0 or view.now_s - reset_s >= RESET_S:
                reset_time(view, memory)
            memory["shares"] = self.shares(view, memory)
            memory["basis"], memory["computed_s"] = basis, view.now_s
        return self.realise(view, memory)

    def realise(self, view: ClusterView, memory: Memory) -> Allotments:
        """Return one round of the shares."""
        types = list(view.gpus_of_type)
        if self.is_blind:
            np.random.default_rng((view.seed, view.round_number)).shuffle(types)
        allotted: Allotments = {}
        known = [job for job in view.jobs if job.job_id in memory["shares"]]
        for gpu_type in types:
            free = view.gpus_of_type[gpu_type]
            for job in in_turn(known, gpu_type, memory):
                if job.job_id in allotted or job.gpus > free or not runs_on(job, gpu_type):
                    continue
                allotted[job.job_id] = Allotment(gpu_type, job.gpus)
                free -= job.gpus
        memory["last"] = {job_id: own.gpu_type for job_id, own in allotted.items()}
        return allotted


def in_turn(jobs: Sequence[CandidateJob], gpu_type: str, memory: Memory) -> list[CandidateJob]:
    """Return the jobs by their claim on the type's next round, the highest first."""
    total_s = memory["total_s"].get(gpu_type, 0.0)

    def claim(job: CandidateJob) -> tuple[float, float, float]:
        share = memory["shares"][job.job_id].get(gpu_type, 0.0)
        ran_s = memory["ran_s"].get(job.job_id, {}).get(gpu_type, 0.0)
        part = ran_s / total_s if total_s > 0 else 0.0
        deficit_s = memory["deficit_s"].get(job.job_id, {}).get(gpu_type, 0.0)
        return share / part if part > 0 else share * NEVER_RAN, deficit_s, share

    return sorted(jobs, key=claim, reverse=True)


def note_time(view: ClusterView, memory: Memory) -> None:
    """Add the time of the last round to what its jobs had."""
    for name in ("ran_s", "total_s", "deficit_s", "shares", "last"):
        memory.setdefault(name, {})
    passed_s = view.now_s - memory.get("at_s", view.now_s)
    for job_id, gpu_type in memory["last"].items():
        ran_s = memory["ran_s"].setdefault(job_id, {})
        ran_s[gpu_type] = ran_s.get(gpu_type, view.round_s / 2) + passed_s
        memory["total_s"][gpu_type] = memory["total_s"].get(gpu_type, 0.0) + passed_s
    memory["at_s"] = view.now_s


def reset_time(view: ClusterView, memory: Memory) -> None:
    """Begin to count anew; what a job had less than its share stays as its deficit."""
    passed_s = view.now_s - memory.get("reset_s", 0.0)
    memory["reset_s"] = view.now_s
    first_s = view.round_s / 2
    ran_s, deficit_s, total_s = {}, {}, dict.fromkeys(view.gpus_of_type, 0.0)
    for job in view.jobs:
        ran_s[job.job_id] = dict.fromkeys(view.gpus_of_type, first_s)
        earlier = memory["deficit_s"].get(job.job_id, {})
        had_s = memory["ran_s"].get(job.job_id, {})
        share = memory["shares"].get(job.job_id, {})
        deficit_s[job.job_id] = {
            name: earlier.get(name, 0.0)
            + share.get(name, 0.0) * passed_s
            - (had_s.get(name, first_s) - first_s)
            for name in view.gpus_of_type
        }
        for name in total_s:
            total_s[name] += first_s
    memory["ran_s"], memory["deficit_s"], memory["total_s"] = ran_s, deficit_s, total_s


def runs_on(job: CandidateJob, gpu_type: str) -> bool:
    """Return whether the job may use the type, and was not measured to fail on it."""
    if not job.may_use(gpu_type):
        return False
    table = job.estimates.rates
    return table is None or table.consolidated_rate(gpu_type, job.gpus) != 0.0


def rates_of(view: ClusterView, is_blind: bool = False) -> Floats:
    """Return rates [jobs, types]; where they are unknown, or for a blind scheduler, all are 1.

    A job whose rate is known on some types alone is taken to run nowhere else.
    """
    types = list(view.gpus_of_type)
    rates = np.ones((len(view.jobs), len(types)))
    for number, job in enumerate(view.jobs):
        table = job.estimates.rates
        if table is not None and not is_blind:
            rates[number] = [table.consolidated_rate(name, job.gpus) or 0.0 for name in types]
        rates[number] *= [job.may_use(name) for name in types]
    return rates


def shares_of(view: ClusterView, values: Floats) -> Shares:
    types = list(view.gpus_of_type)
    return {
        job.job_id: {name: share for name, share in zip(types, own, strict=True) if share > 0.0}
        for job, own in zip(view.jobs, values.tolist(), strict=True)
    }


def gangs_and_capacity(view: ClusterView) -> tuple[Floats, Floats]:
    gangs = np.array([job.gpus for job in view.jobs], np.float64)
    return gangs, np.array(list(view.gpus_of_type.values()), np.float64)


def work_left(jobs: Sequence[CandidateJob]) -> Mapping[str, float]:
    """Return the work left by job; a job whose work is unknown is missing."""
    lefts = {job.job_id: job.estimates.work_left for job in jobs}
    return {job_id: left for job_id, left in lefts.items() if left is not None}
