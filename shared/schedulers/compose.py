"""A proposal from the six hooks and `wake_s`, and the changes that it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from shared.schedulers.hooks import HostShares, Memory, Placements, Scheduler
from shared.schedulers.host_shares.sensitivity import PerGpu
from shared.schedulers.view import CandidateJob, ClusterView, Placement, gpus_of

Change = Literal["start", "stop", "resize", "migrate", "regroup"]
Groups: TypeAlias = tuple[tuple[str, ...], ...]
"""Jobs that hold the same GPUs, at least two in each; jobs and groups ordered by id."""


@dataclass(frozen=True)
class Proposal:
    """The placement of each job until the next decision; a job that is not named holds none."""

    scheduler: str
    placements: Placements
    host_shares: HostShares = field(default_factory=dict)
    groups: Groups = ()
    wake_s: float | None = None

    @cached_property
    def neighbours(self) -> Mapping[str, tuple[str, ...]]:
        """Return the others of the group of each job that has any."""
        return {
            job_id: tuple(other for other in group if other != job_id)
            for group in self.groups
            for job_id in group
        }


def propose(scheduler: Scheduler, view: ClusterView, memory: Memory) -> Proposal:
    """Return the scheduler's proposal; `memory` is changed.

    Running jobs that may not be stopped keep their GPUs, and the scheduler sees the rest of the
    cluster. If allotments fit on no nodes, `evict` may name placed jobs; without those the rest is
    placed once more. Jobs that share GPUs get the placement of the one that they share with.
    """
    pinned = {job.job_id: job.placement for job in view.jobs if is_pinned(job)}
    pinned_shares = {
        job.job_id: job.host_share for job in view.jobs if is_pinned(job) and job.host_share
    }
    groups = groups_among(view, pinned)
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
    for job_id, others in scheduler.share(view, dict(placed), memory).items():
        if others:
            groups.add(tuple(sorted((job_id, *others))))
            placed.update(dict.fromkeys(others, placed.get(job_id, ())))
    shares = scheduler.share_hosts(view, placed, memory)
    return Proposal(
        scheduler.name,
        {**pinned, **placed},
        {**pinned_shares, **shares},
        tuple(sorted(groups)),
        scheduler.wake_s(view, placed, memory),
    )


def is_pinned(job: CandidateJob) -> bool:
    return job.is_running and not job.preemptible


def groups_among(view: ClusterView, job_ids: Iterable[str]) -> set[tuple[str, ...]]:
    """Return the groups of the present, as far as they are among the jobs."""
    chosen = set(job_ids)
    groups = set()
    for job_id in chosen:
        others = chosen.intersection(view.job_by_id[job_id].neighbours)
        if others:
            groups.add(tuple(sorted((job_id, *others))))
    return groups


def without(view: ClusterView, pinned: Placements) -> ClusterView:
    """Return the view without the jobs, and without what they hold of nodes.

    GPUs of a group are held once; each of its jobs has cores and memory of its own.
    """
    held = held_gpus(pinned, groups_among(view, pinned))
    nodes = {
        node.node_id: node._replace(gpus=node.gpus - held.get(node.node_id, 0))
        for node in view.nodes
    }
    for job_id, placement in pinned.items():
        share = view.job_by_id[job_id].host_share or PerGpu(0, 0)
        for node_id, gpus in placement:
            node = nodes[node_id]
            nodes[node_id] = node._replace(
                cpu_milli=node.cpu_milli - gpus * share.cpu_milli,
                mem_mib=node.mem_mib - gpus * share.mem_mib,
            )
    jobs = tuple(job for job in view.jobs if job.job_id not in pinned)
    return replace(view, jobs=jobs, nodes=tuple(nodes.values()))


def held_gpus(placements: Placements, groups: Iterable[tuple[str, ...]]) -> dict[str, int]:
    """Return the GPUs in use by node; those of a group count once."""
    repeated = {job_id for group in groups for job_id in group[1:]}
    held: dict[str, int] = {}
    for job_id, placement in placements.items():
        if job_id not in repeated:
            for node_id, gpus in placement:
                held[node_id] = held.get(node_id, 0) + gpus
    return held


def changes(view: ClusterView, proposal: Proposal) -> dict[str, Change]:
    """Return the change of each job that does not keep its GPUs, or gets another neighbour."""
    changed = {job.job_id: change_of(job, proposal) for job in view.jobs}
    return {job_id: change for job_id, change in changed.items() if change is not None}


def change_of(job: CandidateJob, proposal: Proposal) -> Change | None:
    """Return the change of a job; that a neighbour leaves it is none."""
    placement: Placement = proposal.placements.get(job.job_id, ())
    if placement == job.placement:
        is_new = set(proposal.neighbours.get(job.job_id, ())) - set(job.neighbours)
        return "regroup" if is_new and placement else None
    if not job.placement:
        return "start"
    if not placement:
        return "stop"
    return "migrate" if gpus_of(placement) == gpus_of(job.placement) else "resize"
