"""The rules that any proposal keeps: one that breaks one of them is refused whole."""

from __future__ import annotations

from collections.abc import Iterator

from shared.schedulers.compose import Proposal, changes
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
    used: dict[str, int] = {}
    for job_id, placement in proposal.placements.items():
        job = view.job_by_id.get(job_id)
        if job is None:
            yield f"job {job_id}: must be one of the view"
            continue
        yield from _of_placement(view, job, placement)
        for node_id, gpus in placement:
            used[node_id] = used.get(node_id, 0) + gpus
    for node_id, gpus in used.items():
        node = view.node_by_id.get(node_id)
        if node is not None and gpus > node.gpus:
            yield f"GPUs of node {node_id}: {gpus}, must be at most {node.gpus}"
    yield from _of_changes(view, proposal)


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
    if len(types) > 1:
        yield f"GPU types of job {job.job_id}: {', '.join(types)}, must be one"
    elif types and not job.may_use(types[0]):
        allowed = ", ".join(job.gpu_types)
        yield f"GPU type of job {job.job_id}: {types[0]}, must be one of {allowed}"
    gpus = gpus_of(placement)
    if not job.min_gpus <= gpus <= job.max_gpus:
        bounds = f"{job.min_gpus} to {job.max_gpus}"
        yield f"GPUs of job {job.job_id}: {gpus}, must be {bounds}"


def _of_changes(view: ClusterView, proposal: Proposal) -> Iterator[str]:
    changed = changes(view, proposal)
    for job_id, change in changed.items():
        if change != "start" and not view.job_by_id[job_id].preemptible:
            yield f"change of job {job_id}: {change}, must be none, as it is not preemptible"
    if len(changed) > view.limits.moves:
        yield f"changes: {len(changed)}, must be at most {view.limits.moves}"
