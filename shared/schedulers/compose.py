"""A proposal from the five hooks, and the changes that it means."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from shared.schedulers.hooks import HostShares, Memory, Placements, Scheduler
from shared.schedulers.host_shares.sensitivity import PerGpu
from shared.schedulers.view import CandidateJob, ClusterView, Placement, gpus_of

Change = Literal["start", "stop", "resize", "migrate"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The placement of each job until the next decision; a job that is not named holds none."""

    scheduler: str
    placements: Placements
    host_shares: HostShares = field(default_factory=dict)


def propose(scheduler: Scheduler, view: ClusterView, memory: Memory) -> Proposal:
    """Return the scheduler's proposal; `memory` is changed.

    Running jobs that may not be stopped keep their GPUs, and the scheduler sees the rest of the
    cluster. If allotments fit on no nodes, `evict` may name placed jobs; without those the rest is
    placed once more.
    """
    pinned = {job.job_id: job.placement for job in view.jobs if is_pinned(job)}
    pinned_shares = {
        job.job_id: job.host_share for job in view.jobs if is_pinned(job) and job.host_share
    }
    if pinned:
        view = without(view, pinned)
    ranked = scheduler.rank(view, memory)
    allotments = scheduler.allot(view, ranked, memory)
    placements = scheduler.place(view, allotments, memory)
    unplaced = [job_id for job_id in allotments if job_id not in placements]
    if unplaced and (victims := set(scheduler.evict(view, unplaced, placements, memory))):
        rest = {job_id: own for job_id, own in allotments.items() if job_id not in victims}
        placements = scheduler.place(view, rest, memory)
    placed = {name: own for name, own in placements.items() if own}
    shares = scheduler.share_hosts(view, placed, memory)
    return Proposal(scheduler.name, {**pinned, **placed}, {**pinned_shares, **shares})


def is_pinned(job: CandidateJob) -> bool:
    return job.is_running and not job.preemptible


def without(view: ClusterView, pinned: Placements) -> ClusterView:
    """Return the view without the jobs, and without what they hold of nodes."""
    nodes = dict(view.node_by_id)
    for job_id, placement in pinned.items():
        share = view.job_by_id[job_id].host_share or PerGpu(0, 0)
        for node_id, gpus in placement:
            node = nodes[node_id]
            nodes[node_id] = node._replace(
                gpus=node.gpus - gpus,
                cpu_milli=node.cpu_milli - gpus * share.cpu_milli,
                mem_mib=node.mem_mib - gpus * share.mem_mib,
            )
    jobs = tuple(job for job in view.jobs if job.job_id not in pinned)
    return replace(view, jobs=jobs, nodes=tuple(nodes.values()))


def changes(view: ClusterView, proposal: Proposal) -> dict[str, Change]:
    """Return the change of each job that does not keep its GPUs."""
    changed = {
        job.job_id: change_of(job, proposal.placements.get(job.job_id, ())) for job in view.jobs
    }
    return {job_id: change for job_id, change in changed.items() if change is not None}


def change_of(job: CandidateJob, placement: Placement) -> Change | None:
    if placement == job.placement:
        return None
    if not job.placement:
        return "start"
    if not placement:
        return "stop"
    return "migrate" if gpus_of(placement) == gpus_of(job.placement) else "resize"
