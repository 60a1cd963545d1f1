"""The closest GPUs for each job of a view by its measured steps: those free, or those of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from shared.performance.links import LinkTier
from shared.schedulers.hooks import Allotment
from shared.schedulers.placing import FreeGpus
from shared.schedulers.racks import Racks
from shared.schedulers.view import CandidateJob, ClusterView, Placement, footprint_of


@dataclass(frozen=True, slots=True)
class ClosenessRules:
    """Slowdowns from which a closer tier is worth something, and the least time between changes.

    A tier that slows a job down by at most `worth_a_wait` is as good as a closer one. From
    `worth_a_move` on a job moves to closer GPUs, or others are stopped for it. A job that has been
    on its GPUs for less than `least_run_s` stays there.
    """

    worth_a_wait: float = 1.5
    worth_a_move: float = 1.5
    least_run_s: float = 1800.0


class Closeness:
    """Racks of each type, and what their links mean for a job."""

    def __init__(self, view: ClusterView, rules: ClosenessRules) -> None:
        self.view = view
        self.rules = rules
        self.racks = {name: Racks.of(view.nodes, name) for name in view.gpus_of_type}
        self.best_tier = lru_cache(maxsize=None)(
            lambda gpu_type, gpus: self.racks[gpu_type].best_tier(gpus)
        )

    def good_tier(self, job: CandidateJob, allotment: Allotment) -> LinkTier:
        """Return the farthest tier that is as good for the job as the closest that it can have."""
        best = self.best_tier(*allotment)
        for tier in (LinkTier.SPINE, LinkTier.RACK):
            slowdown = slowdown_of(job, tier, best)
            if tier > best and (slowdown is None or slowdown <= self.rules.worth_a_wait):
                return tier
        return best

    def loss(self, job: CandidateJob, allotment: Allotment) -> float:
        """Return the slowdown over the spine, relative to the closest tier; 1 where unknown."""
        return slowdown_of(job, LinkTier.SPINE, self.best_tier(*allotment)) or 1.0

    def tier_of(self, placement: Placement) -> LinkTier | None:
        return footprint_of(placement, self.view.node_by_id).tier

    def is_worth_a_move(self, job: CandidateJob, tier: LinkTier) -> bool:
        """Return whether a running job gains enough by a move to free GPUs on the tier."""
        present = self.tier_of(job.placement)
        if present is None or tier >= present:
            return False
        return (slowdown_of(job, present, tier) or 1.0) >= self.rules.worth_a_move

    def victims(
        self,
        job: CandidateJob,
        allotment: Allotment,
        free: FreeGpus,
        others: Sequence[CandidateJob],
    ) -> list[CandidateJob]:
        """Return the others with the fewest GPUs whose stop gives the job GPUs on its good tier.

        An other is one that loses less by the spine, by `worth_a_move`, and has had more GPU time.
        """
        loss = self.loss(job, allotment)
        if loss < self.rules.worth_a_move:
            return []
        stoppable = [
            own
            for own in others
            if own.held_gpu_s > job.held_gpu_s
            and self.loss(own, held_by(self.view, own)) * self.rules.worth_a_move <= loss
        ]
        stoppable.sort(key=lambda own: (-own.held_gpu_s, own.job_id))
        chosen: list[CandidateJob] = []
        racks = self.racks[allotment.gpu_type]
        for nodes in racks.domains(self.good_tier(job, allotment)):
            missing = allotment.gpus - sum(free[node] for node in nodes)
            picked = enough_of(stoppable, set(nodes), missing)
            if picked and (not chosen or gpus_held(picked) < gpus_held(chosen)):
                chosen = picked
        return chosen


def enough_of(jobs: Sequence[CandidateJob], nodes: set[str], missing: int) -> list[CandidateJob]:
    """Return the first jobs that hold so many GPUs of the nodes; none if all hold too few."""
    picked: list[CandidateJob] = []
    for job in jobs:
        if missing <= 0:
            break
        held = sum(gpus for node, gpus in job.placement if node in nodes)
        if held:
            picked.append(job)
            missing -= held
    return picked if missing <= 0 else []


def gpus_held(jobs: Sequence[CandidateJob]) -> int:
    return sum(gpus for job in jobs for _, gpus in job.placement)


def held_by(view: ClusterView, job: CandidateJob) -> Allotment:
    gpu_type = view.type_of(job.placement)
    assert gpu_type is not None, "the job runs"
    return Allotment(gpu_type, gpus_held([job]))


def slowdown_of(job: CandidateJob, tier: LinkTier, best: LinkTier) -> float | None:
    """Return how many times as long a step of the job takes on a tier as on a closer one."""
    steps = job.estimates.steps
    return None if steps is None else steps.slowdown(job.gpus, tier, best)
