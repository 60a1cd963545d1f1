"""The rules that any proposal keeps: one that breaks one of them is refused whole."""

from __future__ import annotations

from collections.abc import Iterator

from shared.schedulers.compose import Proposal, changes, held_gpus, is_pinned
from shared.schedulers.view import CandidateJob, ClusterView, Placement, gpus_of


class ProposalRefused(ValueError):
    """A scheduler proposed what no cluster can do; the message names it and the first rule."""

    def __init__(self, scheduler: str, violation: str) -> None:
        super().__init__(f"scheduler {scheduler}: {violation}")
        self.scheduler = scheduler
        self.violation = violation


def check(view: ClusterView, proposal: Proposal) -> None:
    """Raise ProposalRefused if the proposal breaks a rule."""
    violation = next(violations(view, proposal), None)
    if violation is not None:
        raise ProposalRefused(proposal.scheduler, violation)


def violations(view: ClusterView, proposal: Proposal) -> Iterator[str]:
    """Yield each violation with the field, the value and the rule."""
    for job_id, placement in proposal.placements.items():
        job = view.job_by_id.get(job_id)
        if job is None:
            yield f"job {job_id}: must be one of the view"
            continue
        yield from _of_placement(view, job, placement)
    yield from _of_groups(view, proposal)
    for node_id, gpus in held_gpus(proposal.placements, proposal.groups).items():
        node = view.node_by_id.get(node_id)
        if node is not None and gpus > node.gpus:
            yield f"GPUs of node {node_id}: {gpus}, must be at most {node.gpus}"
    yield from _of_host_shares(view, proposal)
    yield from _of_changes(view, proposal)


def _of_host_shares(view: ClusterView, proposal: Proposal) -> Iterator[str]:
    cpu_milli: dict[str, int] = {}
    mem_mib: dict[str, int] = {}
    for job_id, share in proposal.host_shares.items():
        if job_id not in proposal.placements:
            yield f"cores and memory of job {job_id}: must be of a job with GPUs"
            continue
        if share.cpu_milli < 0 or share.mem_mib < 0:
            yield f"cores and memory of job {job_id}: {tuple(share)}, must be at least 0"
        for node_id, gpus in proposal.placements[job_id]:
            cpu_milli[node_id] = cpu_milli.get(node_id, 0) + gpus * share.cpu_milli
            mem_mib[node_id] = mem_mib.get(node_id, 0) + gpus * share.mem_mib
    for node_id, held in cpu_milli.items():
        node = view.node_by_id.get(node_id)
        if node is None:
            continue
        if held > node.cpu_milli:
            yield f"cores of node {node_id}, 1/1000: {held}, must be at most {node.cpu_milli}"
        if mem_mib[node_id] > node.mem_mib:
            most = node.mem_mib
            yield f"memory of node {node_id}, MiB: {mem_mib[node_id]}, must be at most {most}"


def _of_placement(view: ClusterView, job: CandidateJob, placement: Placement) -> Iterator[str]:
    nodes = [node_id for node_id, _ in placement]
    if len(set(nodes)) < len(nodes):
        yield f"nodes of job {job.job_id}: {nodes}, must differ"
    for node_id, gpus in placement:
        if node_id not in view.node_by_id:
            yield f"node of job {job.job_id}: {node_id}, must be one of the view"
            return
        if gpus < 1:
            yield f"GPUs of job {job.job_id} on node {node_id}: {gpus}, must be at least 1"
    types = sorted({view.node_by_id[node_id].gpu_type for node_id in nodes})
    if len(types) > 1 and not view.mixes_types:
        yield f"GPU types of job {job.job_id}: {', '.join(types)}, must be one"
    for name in types:
        if not job.may_use(name):
            allowed = ", ".join(job.gpu_types)
            yield f"GPU type of job {job.job_id}: {name}, must be one of {allowed}"
    gpus = gpus_of(placement)
    if not job.min_gpus <= gpus <= job.max_gpus:
        bounds = f"{job.min_gpus} to {job.max_gpus}"
        yield f"GPUs of job {job.job_id}: {gpus}, must be {bounds}"


def _of_groups(view: ClusterView, proposal: Proposal) -> Iterator[str]:
    grouped = [job_id for group in proposal.groups for job_id in group]
    for job_id in sorted(set(grouped)):
        if grouped.count(job_id) > 1:
            yield f"groups of job {job_id}: {grouped.count(job_id)}, must be one"
        if job_id not in proposal.placements:
            yield f"job {job_id} of a group: holds no GPUs, must hold those of the group"
    for group in proposal.groups:
        if not 2 <= len(group) <= view.sharing.most_jobs:
            bounds = f"2 to {view.sharing.most_jobs}" if view.sharing.most_jobs > 1 else "alone"
            yield f"jobs on the same GPUs: {', '.join(group)}, must be {bounds}"
        if len({proposal.placements.get(job_id) for job_id in group}) > 1:
            yield f"GPUs of jobs {', '.join(group)}: must be the same, as they share them"
    for job in view.jobs:
        gained = set(proposal.neighbours.get(job.job_id, ())) - set(job.neighbours)
        if gained and is_pinned(job):
            others = ", ".join(sorted(gained))
            yield f"new neighbours of job {job.job_id}: {others}, must be none"


def _of_changes(view: ClusterView, proposal: Proposal) -> Iterator[str]:
    changed = changes(view, proposal)
    for job_id, change in changed.items():
        if change not in ("start", "regroup") and not view.job_by_id[job_id].preemptible:
            yield f"change of job {job_id}: {change}, must be none, as it is not preemptible"
    if len(changed) > view.limits.moves:
        yield f"changes: {len(changed)}, must be at most {view.limits.moves}"
