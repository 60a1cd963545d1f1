"""A request for a proposal, and its answer: what the process of a scheduler gets and gives back."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from services.placement.core.pool.state import Pool
from services.placement.core.scheduled.cluster import cluster_view, first_waiting
from shared.contracts.proposals import ProposalReady, ProposedGpus, ProposedNode
from shared.schedulers.check import check
from shared.schedulers.compose import Proposal, propose
from shared.schedulers.hooks import Hooks
from shared.schedulers.in_pools import NODES, not_carried_out
from shared.schedulers.registry import scheduler_of
from shared.schedulers.view import ClusterView, Placement, gpus_of

REASON_CHARS = 1000
MEMORY_BYTES = 200_000
"""Most bytes of memory in a record of the ledger, which has its bounds."""


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """The view of a scheduler, and its memory of the last proposal."""

    at_seq: int
    scheduler: str
    view: ClusterView
    queue: tuple[str, ...]
    """Waiting jobs of the view, in the order of the queue."""
    memory: str
    """JSON"""


def request_of(pool: Pool) -> ProposalRequest:
    """Return the request of the open proposal: the pool as it is now, at that moment."""
    open_, last = pool.schedule.open, pool.schedule
    assert open_ is not None and pool.settings is not None
    return ProposalRequest(
        open_.seq,
        pool.settings.scheduler or "",
        cluster_view(pool, open_.at),
        tuple(job.job_id for job in first_waiting(pool, Hooks.most_waiting)),
        last.memory,
    )


def propose_now(pool: Pool) -> ProposalReady | None:
    """Return the answer to offer at the same instant, for a simulation; None without a request."""
    return answer_to(request_of(pool)) if pool.schedule.open is not None else None


def answer_to(request: ProposalRequest) -> ProposalReady:
    """Return the proposal of the scheduler; what breaks a rule is refused whole, and named."""
    name, memory = request.scheduler, json.loads(request.memory)
    try:
        scheduler = carried_out(scheduler_of(name))
        proposal = proposal_of(scheduler, request, memory)
        text = json.dumps(memory, sort_keys=True)
        if len(text) > MEMORY_BYTES:
            raise ValueError(f"memory of {len(text)} bytes, must be at most {MEMORY_BYTES}")
    except Exception as error:  # Of a package of others, it may be any.
        reason = (str(error) or type(error).__name__)[:REASON_CHARS]
        refused = reason if name in reason else f"scheduler {name}: {reason}"
        return ProposalReady(at_seq=request.at_seq, refused=refused)
    return ProposalReady(
        at_seq=request.at_seq,
        proposed=proposed_gpus(scheduler, request.view, proposal),
        memory=text,
        wake_s=proposal.wake_s,
    )


def carried_out(scheduler: Hooks) -> Hooks:
    """Return the scheduler. Raises ValueError if it decides what no pool carries out."""
    if others := not_carried_out(scheduler.decides):
        raise ValueError(f"scheduler {scheduler.name}: decides {', '.join(others)}, as no pool can")
    return scheduler


def proposal_of(scheduler: Hooks, request: ProposalRequest, memory: dict[str, Any]) -> Proposal:
    """Return the proposal; `memory` is changed. Raises ValueError on nonsense."""
    view = shown(request, scheduler.most_waiting)
    proposal = Proposal(request.scheduler, {})
    if view.nodes and view.jobs:
        proposal = propose(scheduler, view, memory)
    check(view, proposal)
    return proposal


def proposed_gpus(
    scheduler: Hooks, view: ClusterView, proposal: Proposal
) -> tuple[ProposedGpus, ...]:
    """Return the GPUs of each job by id, with their nodes where the scheduler decides these."""
    chooses_nodes = NODES in scheduler.decides
    return tuple(
        ProposedGpus(
            job_id=job_id,
            gpu_type=gpu_type,
            gpus=gpus_of(placement),
            nodes=nodes_of(placement) if chooses_nodes else (),
        )
        for job_id, placement in sorted(proposal.placements.items())
        if (gpu_type := view.type_of(placement)) is not None
    )


def nodes_of(placement: Placement) -> tuple[ProposedNode, ...]:
    return tuple(ProposedNode(node_id=node_id, gpus=gpus) for node_id, gpus in placement)


def shown(request: ProposalRequest, most_waiting: int) -> ClusterView:
    """Return the view with so many waiting jobs at most, the first of the queue."""
    left_out = set(request.queue[most_waiting:])
    if not left_out:
        return request.view
    jobs = tuple(job for job in request.view.jobs if job.job_id not in left_out)
    return replace(request.view, jobs=jobs)
