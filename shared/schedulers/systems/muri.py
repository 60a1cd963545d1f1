"""Muri (Zhao et al., SIGCOMM'22): jobs on the same GPUs whose stages use different resources.

Jobs are taken in order, as many of one size as may share, until all GPUs are claimed; then pairs of
one size are merged by a matching of largest total efficiency, round after round, until the groups
fit. A group that would be slower than its jobs one after another is split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

from shared.performance.interleaving import GpuSharing, StageProfile, efficiency, group_iteration_s
from shared.schedulers.consolidated import first_fit, free_of_type
from shared.schedulers.hooks import (
    Allotment,
    Allotments,
    Decides,
    Memory,
    Need,
    Neighbours,
    Placements,
)
from shared.schedulers.pairing import best_pairs
from shared.schedulers.placing import take
from shared.schedulers.systems.srsf import Srsf, fitting
from shared.schedulers.view import CandidateJob, ClusterView

SOURCE = "Zhao et al., SIGCOMM'22"

Group: TypeAlias = tuple[CandidateJob, ...]
Kind: TypeAlias = tuple[StageProfile | None, ...]


class Muri(Srsf):
    """Muri-S: the shortest remaining service first. A job of unknown stages shares with none."""

    name: ClassVar[str] = "muri"
    source: ClassVar[str] = f"{SOURCE}, durations known (Muri-S)"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left", "stages")
    decides: ClassVar[tuple[Decides, ...]] = ("order", "neighbours")

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        place_of = {job_id: number for number, job_id in enumerate(ranked)}
        allotted: Allotments = {}
        memory["neighbours"] = {}
        left = [view.job_by_id[job_id] for job_id in ranked]
        for gpu_type, capacity in view.gpus_of_type.items():
            usable = [job for job in left if job.may_use(gpu_type)]
            buckets = candidates(view, gpu_type, usable)
            groups = merged(buckets, capacity, view.sharing)
            groups.sort(key=lambda group: min(place_of[job.job_id] for job in group))
            by_first = {group[0].job_id: group for group in groups}
            for first in fitting(view, gpu_type, [group[0] for group in groups]):
                ids = [job.job_id for job in leading(by_first[first.job_id])]
                allotted[ids[0]] = Allotment(gpu_type, first.gpus)
                memory["neighbours"][ids[0]] = ids[1:]
            taken = {job_id for own in memory["neighbours"].values() for job_id in own}
            left = [job for job in left if job.job_id not in taken | allotted.keys()]
        return allotted

    def share(self, view: ClusterView, placements: Placements, memory: Memory) -> Neighbours:
        noted: dict[str, list[str]] = memory["neighbours"]
        return {job_id: tuple(own) for job_id, own in noted.items() if own and job_id in placements}


class MuriUnknown(Muri):
    """Muri-L: the least attained service first, in GPU seconds."""

    name: ClassVar[str] = "muri_unknown"
    source: ClassVar[str] = f"{SOURCE}, durations unknown (Muri-L)"
    needs: ClassVar[tuple[Need, ...]] = ("stages",)

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        in_order = sorted(view.jobs, key=lambda job: (job.held_gpu_s, job.submit_s, job.job_id))
        return [job.job_id for job in in_order]


def candidates(
    view: ClusterView, gpu_type: str, jobs: Sequence[CandidateJob]
) -> dict[int, list[CandidateJob]]:
    """Return jobs by number of GPUs: for each that first fit places, as many as may share."""
    buckets: dict[int, list[CandidateJob]] = {}
    for job in jobs:
        buckets.setdefault(job.gpus, []).append(job)
    free = free_of_type(view, gpu_type)
    largest = max(free.values(), default=0)
    chosen = dict.fromkeys(buckets, 0)
    passed = dict.fromkeys(buckets, 0)
    for job in jobs:
        passed[job.gpus] += 1
        if passed[job.gpus] <= chosen[job.gpus]:
            continue
        placement = first_fit(free, largest, job.gpus)
        if placement:
            take(free, placement)
            chosen[job.gpus] += view.sharing.most_jobs
    return {gpus: own[: chosen[gpus]] for gpus, own in buckets.items()}


def merged(
    buckets: Mapping[int, Sequence[CandidateJob]], capacity: int, sharing: GpuSharing
) -> list[Group]:
    """Return groups of jobs of one size, no larger than needed to fit the capacity."""
    groups: dict[int, list[Group]] = {
        gpus: [(job,) for job in jobs] for gpus, jobs in buckets.items()
    }
    required = sum(gpus * len(own) for gpus, own in groups.items())
    for _ in range(sharing.most_jobs):
        if required <= capacity:
            break
        pairs: list[tuple[float, int, Group, Group]] = []
        for gpus, own in groups.items():
            weights = pair_weights(own, sharing)
            for one, two in best_pairs(len(own), weights):
                idle_gpus = (1.0 - weights[one, two]) * gpus
                pairs.append((idle_gpus, gpus, own[one], own[two]))
        if not pairs:
            break
        for _, gpus, first, second in sorted(pairs, key=lambda pair: pair[0]):
            if required <= capacity:
                break
            groups[gpus].remove(first)
            groups[gpus].remove(second)
            groups[gpus].append((*first, *second))
            required -= gpus
    return [part for own in groups.values() for group in own for part in worthwhile(group, sharing)]


def pair_weights(groups: Sequence[Group], sharing: GpuSharing) -> dict[tuple[int, int], float]:
    """Return the efficiency of each two groups as one; those that cannot be one are missing."""
    profiles = [profiles_of(group) for group in groups]
    kinds: dict[Kind, int] = {}
    numbers = [kinds.setdefault(own, len(kinds)) for own in profiles]
    known: dict[tuple[int, int], float | None] = {}
    weights = {}
    for two, second in enumerate(numbers):
        for one, first in enumerate(numbers[:two]):
            if (first, second) not in known:
                known[first, second] = weight_of((*profiles[one], *profiles[two]), sharing)
            weight = known[first, second]
            if weight is not None:
                weights[one, two] = weight
    return weights


def weight_of(kind: Kind, sharing: GpuSharing) -> float | None:
    profiles = [profile for profile in kind if profile is not None]
    if len(kind) > sharing.most_jobs or len(profiles) < len(kind):
        return None
    together_s = group_iteration_s(profiles, sharing)
    return None if together_s is None else efficiency(profiles, together_s)


def worthwhile(group: Group, sharing: GpuSharing) -> list[Group]:
    """Return the group, or its jobs alone if they are faster one after another."""
    if len(group) == 1:
        return [group]
    profiles = [profile for profile in profiles_of(group) if profile is not None]
    together_s = group_iteration_s(profiles, sharing)
    alone_s = sum(profile.iteration_s for profile in profiles)
    is_slower = together_s is None or together_s > alone_s
    return [(job,) for job in group] if is_slower else [group]


def profiles_of(group: Group) -> Kind:
    return tuple(job.estimates.stages for job in group)


def leading(group: Group) -> Group:
    """Return the group with a job in front that holds GPUs, so that they stay the group's."""
    return tuple(sorted(group, key=lambda job: not job.is_running))
