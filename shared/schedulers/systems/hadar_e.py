"""HadarE (Sultana et al., arXiv 2503.10918): Hadar, and copies of jobs on nodes that are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from shared.schedulers.hooks import Allotments, Decides, Memory
from shared.schedulers.placing import FreeGpus, take
from shared.schedulers.systems.hadar import Hadar, rate_on
from shared.schedulers.view import CandidateJob, ClusterView, Placement, gpus_of


class HadarForked(Hadar):
    """Each job has one gang as by Hadar; then nodes that are left get copies of jobs.

    A copy is a whole gang on one node, of any type that the job may use. A job has at most one copy
    a node, and no more than `max_gpus`: one that is not elastic is never forked, as its training
    would be another one. The next copy goes to the job with the most time left on all its copies,
    on the free node where it is fastest. Without `view.mixes_types` all copies are of one type.
    """

    name: ClassVar[str] = "hadar_e"
    source: ClassVar[str] = "Sultana et al., arXiv 2503.10918, forking, as reconstructed"
    decides: ClassVar[tuple[Decides, ...]] = ("order", "type", "gpus", "nodes")

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        allotments = super().allot(rigid(view), ranked, memory)
        chosen: dict[str, Placement] = super().place(view, allotments, memory)
        free = {node.node_id: node.gpus for node in view.nodes}
        for placement in chosen.values():
            take(free, placement)
        add_copies(view, chosen, free, memory)
        memory["chosen"] = {job_id: [list(part) for part in own] for job_id, own in chosen.items()}
        return {
            job_id: own._replace(gpus=gpus_of(chosen[job_id])) for job_id, own in allotments.items()
        }


def rigid(view: ClusterView) -> ClusterView:
    """Return the view in which copies are not held: Hadar decides about one gang of each job."""
    jobs = tuple(
        job if gpus_of(job.placement) <= job.gpus else replace_placement(job) for job in view.jobs
    )
    return replace(view, jobs=jobs)


def replace_placement(job: CandidateJob) -> CandidateJob:
    """Return the job on its first copy alone."""
    left, first = job.gpus, []
    for node, gpus in job.placement:
        if left > 0:
            first.append((node, min(left, gpus)))
            left -= gpus
    return replace(job, placement=tuple(first))


def add_copies(
    view: ClusterView, chosen: dict[str, Placement], free: FreeGpus, memory: Memory
) -> None:
    """Give free nodes to jobs, one copy after another, until none can use one."""
    while True:
        candidates = [
            (left_s(view, job, chosen[job_id], memory), job_id, node)
            for job_id in chosen
            if (job := view.job_by_id[job_id]).gpus > 0
            and (node := best_node(view, job, chosen[job_id], free)) is not None
        ]
        if not candidates:
            return
        _, job_id, node = min(candidates, key=lambda one: (-one[0], one[1]))
        copy: Placement = ((node, view.job_by_id[job_id].gpus),)
        take(free, copy)
        chosen[job_id] = (*chosen[job_id], *copy)


def best_node(
    view: ClusterView, job: CandidateJob, own: Placement, free: Mapping[str, int]
) -> str | None:
    """Return the free node where one more copy is fastest; None if there is none."""
    if gpus_of(own) + job.gpus > job.max_gpus:
        return None
    held = {node for node, _ in own}
    only = None if view.mixes_types else view.type_of(own)
    rates = {
        node: rate
        for node, gpus in free.items()
        if gpus >= job.gpus
        and node not in held
        and only in (None, view.node_by_id[node].gpu_type)
        and (rate := rate_on(view, job, node))
    }
    return min(rates, key=lambda node: (-rates[node], node)) if rates else None


def left_s(view: ClusterView, job: CandidateJob, own: Placement, memory: Memory) -> float:
    """Return the seconds that are left with the steps divided by the rates of the copies."""
    rate = sum(
        (rate_on(view, job, node) or 0.0) * max(1, gpus // job.gpus)
        for node, gpus in own
        if gpus >= job.gpus or len(own) == 1
    )
    left = memory["work"].get(job.job_id, [1.0])[0]
    return float(left / rate) if rate > 0 else float(left)
