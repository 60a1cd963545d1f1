"""Themis (Mahajan et al., NSDI'20): finish-time fairness by auctions among those worst off.

A job's ratio is its finish time here over that with its part of the cluster for itself. GPUs are
leased; when leases end, the jobs with the worst ratios bid for what is free, and what they leave
goes to the others, in an order that is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from shared.schedulers.auction import kept_parts, proportionally_fair
from shared.schedulers.hooks import (
    Allotment,
    Allotments,
    Decides,
    Hooks,
    Memory,
    Need,
    Placements,
    free_by_type,
    running_allotments,
)
from shared.schedulers.view import CandidateJob, ClusterView

FAIRNESS = 0.8
"""Part of the jobs that does not see an offer: those with the best ratios."""
LEASE_S = 600.0
"""The publication says minutes."""


class Themis(Hooks):
    """Each job is an application with one gang. A gang that is not elastic is kept whole, with the
    probability of the part that its bidder keeps.

    A job of unknown length is taken to need as long as it has run so far, at least a lease; one of
    unknown rates is taken to be as fast as it has GPUs, on all types alike.
    """

    name: ClassVar[str] = "themis"
    source: ClassVar[str] = "Mahajan et al., NSDI'20"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left")
    decides: ClassVar[tuple[Decides, ...]] = ("order", "type", "gpus")
    fairness: ClassVar[float] = FAIRNESS
    lease_s: ClassVar[float] = LEASE_S

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        """Return the jobs by the ratio that each would have with its request, the worst first."""
        seen = note_jobs(view, memory)
        ratios = {job.job_id: self.ratio(view, job, seen[job.job_id]) for job in view.jobs}
        worst = sorted(view.jobs, key=lambda job: (-ratios[job.job_id], job.submit_s, job.job_id))
        return [job.job_id for job in worst]

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        ends_s: dict[str, float] = memory.get("lease_ends", {})
        leased = {
            job_id: own
            for job_id, own in running_allotments(view).items()
            if ends_s.get(job_id, 0.0) > view.now_s
        }
        allotted = dict(leased)
        bidders = [job_id for job_id in ranked if job_id not in leased]
        visible = bidders[: math.ceil((1.0 - self.fairness) * len(ranked))]
        allotted.update(self.auction(view, visible, free_by_type(view, leased), memory))
        rng = np.random.default_rng((view.seed, view.round_number))
        unseen = bidders[len(visible) :]
        rng.shuffle(unseen)
        for job_id in (*unseen, *visible):
            if job_id not in allotted:
                self.give_leftovers(view, view.job_by_id[job_id], allotted)
        memory["lease_ends"] = {
            job_id: ends_s[job_id] if job_id in leased else view.now_s + self.lease_s
            for job_id in allotted
        }
        return allotted

    def wake_s(self, view: ClusterView, placements: Placements, memory: Memory) -> float | None:
        """Return the end of the first lease."""
        return min(memory["lease_ends"].values(), default=None)

    def auction(
        self, view: ClusterView, visible: Sequence[str], free: Mapping[str, int], memory: Memory
    ) -> Allotments:
        """Return what the bidders win, after what each has to leave."""
        seen = seen_by(view, memory)
        bids: dict[str, dict[Allotment, float]] = {}
        for job_id in visible:
            job = view.job_by_id[job_id]
            ratios = {
                own: self.ratio(view, job, seen[job_id], own) for own in options(view, job, free)
            }
            bids[job_id] = {own: 1.0 / ratio for own, ratio in ratios.items() if ratio < math.inf}
        choice = proportionally_fair(bids, free)
        parts = kept_parts(bids, free, choice)
        rng = np.random.default_rng((view.seed, view.round_number, 1))
        kept: Allotments = {}
        for job_id, own in choice.items():
            whole = math.floor(parts[job_id] * own.gpus + 1e-6)
            smaller = [other for other in bids[job_id] if other.gpu_type == own.gpu_type]
            usable = max((other.gpus for other in smaller if other.gpus <= whole), default=0)
            if usable:
                kept[job_id] = Allotment(own.gpu_type, usable)
            elif rng.random() < parts[job_id]:
                kept[job_id] = own
        return kept

    def give_leftovers(self, view: ClusterView, job: CandidateJob, allotted: Allotments) -> None:
        """Give the job the fastest allotment that is free, if any."""
        free = free_by_type(view, allotted)
        usable = {own: rest_s(view, job, own, self.lease_s) for own in options(view, job, free)}
        best = min(usable, key=lambda own: (usable[own], own.gpus), default=None)
        if best is not None and usable[best] < math.inf:
            allotted[job.job_id] = best

    def ratio(
        self, view: ClusterView, job: CandidateJob, seen: float, own: Allotment | None = None
    ) -> float:
        """Return the finish time with the allotment over that with a part of the cluster.

        `seen` is the mean number of jobs over the job's life. Without an allotment it is the one
        of those that the cluster has which ends the job first.
        """
        alone = {
            other: rest_s(view, job, other, self.lease_s)
            for other in options(view, job, view.gpus_of_type)
        }
        ideal = min(alone, key=lambda other: (alone[other], other.gpus), default=None)
        if ideal is None or math.isinf(alone[ideal]):
            return math.inf
        left_s = rest_s(view, job, own or ideal, self.lease_s)
        service_gpu_s = job.held_gpu_s + alone[ideal] * ideal.gpus
        part = min(sum(view.gpus_of_type.values()) / seen, ideal.gpus)
        return (view.now_s - job.submit_s + left_s) / max(service_gpu_s / part, 1e-9)


def options(view: ClusterView, job: CandidateJob, free: Mapping[str, int]) -> list[Allotment]:
    """Return the allotments that the job can use, of the GPUs that are free."""
    return [
        Allotment(name, gpus)
        for name, count in free.items()
        if job.may_use(name)
        for gpus in range(max(job.min_gpus, 1), min(job.max_gpus, count) + 1)
    ]


def rest_s(view: ClusterView, job: CandidateJob, own: Allotment, lease_s: float) -> float:
    """Return the seconds of the rest with the allotment; inf where it was measured not to run."""
    table, left = job.estimates.rates, job.estimates.work_left
    if table is None or left is None:
        return max(job.held_s, lease_s) * job.gpus / own.gpus
    rate = table.consolidated_rate(own.gpu_type, own.gpus)
    return left / rate if rate else math.inf


def note_jobs(view: ClusterView, memory: Memory) -> dict[str, float]:
    """Return the mean number of jobs in the cluster over the life of each, up to now."""
    noted = memory.get("seen", {})
    passed_s = view.now_s - memory.get("at_s", view.now_s)
    jobs_s = memory.get("jobs", 0) * passed_s
    seen = {}
    for job in view.jobs:
        total, life_s = noted.get(job.job_id, (0.0, -passed_s))
        is_known = job.job_id in noted
        seen[job.job_id] = [total + jobs_s * is_known, life_s + passed_s]
    memory["seen"], memory["at_s"], memory["jobs"] = seen, view.now_s, len(view.jobs)
    return seen_by(view, memory)


def seen_by(view: ClusterView, memory: Memory) -> dict[str, float]:
    """Return the noted means; for a job that has just come, the jobs of now."""
    return {
        job_id: total / life_s if life_s > 0 else float(len(view.jobs))
        for job_id, (total, life_s) in memory["seen"].items()
    }
