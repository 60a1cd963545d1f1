"""The proposal of a pool's scheduler, checked, as an event that the next rounds carry out."""

from __future__ import annotations

import json
from typing import Any

from services.placement.core.pool.state import Pool
from services.placement.core.scheduled.claims import (
    has_unclaimed_room,
    has_vain_claim,
    is_scheduled,
)
from services.placement.core.scheduled.cluster import cluster_view, holds_in_view
from shared.contracts.checkpoint import wall_ms
from shared.contracts.construct import construct
from shared.contracts.schedules import AllottedGpus, GpusAllotted
from shared.ledger.decider import Decision
from shared.schedulers.check import check
from shared.schedulers.compose import Proposal, propose
from shared.schedulers.hooks import Hooks
from shared.schedulers.registry import scheduler_of
from shared.schedulers.view import ClusterView, gpus_of

CARRIED_OUT = frozenset({"order", "type", "gpus", "share of time"})
"""Decisions that a pool carries out; on which nodes a gang is placed it decides itself."""
EARLY_PARTS = 10
"""A proposal comes a part of a round after the last one at the earliest, where GPUs are free."""
MEMORY_BYTES, ALLOTTED_BYTES = 200_000, 500_000
"""Of a record of the ledger, which has its bounds."""
REASON_CHARS = 1000
FIELDS_BYTES = 48
"""Names of the fields of an allotment, and its number."""


def is_due(pool: Pool, now: int) -> bool:
    """Return whether the scheduler has to decide: at the end of its round, or earlier where a job
    could start on GPUs that it gave to none, or cannot on those that it gave to it.
    """
    settings, last = pool.settings, pool.schedule
    if settings is None or settings.scheduler is None:
        return False
    if last.scheduler != settings.scheduler or now >= last.until:
        return True
    if last.refused or now < early_ms(pool):
        return False
    return has_unclaimed_room(pool) or has_vain_claim(pool)


def early_ms(pool: Pool) -> int:
    """Return the ms before which no proposal follows the last one."""
    assert pool.settings is not None
    return pool.schedule.at + round_ms(pool) // EARLY_PARTS


def round_ms(pool: Pool) -> int:
    assert pool.settings is not None
    return max(1, wall_ms(pool.settings.scheduler_round_s, pool.time_scale))


def allot(pool: Pool, now: int) -> Decision:
    """Return the proposal as an event; what breaks a rule is refused whole, and named."""
    assert pool.settings is not None
    name = pool.settings.scheduler or ""
    memory: dict[str, Any] = {}
    if pool.schedule.scheduler == name:
        memory = json.loads(pool.schedule.memory)
    refused, text = "", "{}"
    allotted: tuple[AllottedGpus, ...] = ()
    try:
        scheduler = carried_out(scheduler_of(name))
        view = cluster_view(pool, now, scheduler.most_waiting)
        proposal = Proposal(name, {})
        if view.nodes and view.jobs:
            proposal = propose(scheduler, view, memory)
        check(view, proposal)
        allotted = allotted_gpus(pool, view, proposal)
        check_bytes("allotments", sum(map(bytes_of, allotted)), ALLOTTED_BYTES)
        text = json.dumps(memory, sort_keys=True)
        check_bytes("memory", len(text), MEMORY_BYTES)
    except Exception as error:  # Of a package of others, it may be any.
        reason = (str(error) or type(error).__name__)[:REASON_CHARS]
        refused = reason if name in reason else f"scheduler {name}: {reason}"
        allotted, text = (), "{}"
    return Decision(
        construct(
            GpusAllotted,
            pool=pool.name,
            scheduler=name,
            number=pool.schedule.number + 1,
            allotted=allotted,
            until=now + round_ms(pool),
            memory=text,
            refused=refused,
        )
    )


def carried_out(scheduler: Hooks) -> Hooks:
    """Return the scheduler. Raises ValueError if it decides what no pool carries out."""
    others = [name for name in scheduler.decides if name not in CARRIED_OUT]
    if others:
        raise ValueError(f"scheduler {scheduler.name}: decides {', '.join(others)}, as no pool can")
    return scheduler


def check_bytes(part: str, size: int, most: int) -> None:
    """Raise ValueError if a part of the event is too large for a record."""
    if size > most:
        raise ValueError(f"{part} of {size} bytes, must be at most {most}")


def bytes_of(own: AllottedGpus) -> int:
    """Return about the bytes of an allotment in a record."""
    return len(own.job_id) + len(own.gpu_type) + FIELDS_BYTES


def allotted_gpus(pool: Pool, view: ClusterView, proposal: Proposal) -> tuple[AllottedGpus, ...]:
    """Return the allotments by job id, with those of jobs that the scheduler does not see."""
    by_id: dict[str, AllottedGpus] = {}
    for job in pool.running.values():
        if is_scheduled(job) and job.phase != "stopping" and not holds_in_view(pool, job):
            node = pool.board.nodes[job.nodes[0]]
            by_id[job.job_id] = of_job(job.job_id, node.kind.gpu_type, len(job.allocations))
    for job_id, placement in proposal.placements.items():
        gpu_type = view.type_of(placement)
        if gpu_type is not None:
            shape = pool.jobs[job_id].shape
            workers = max(shape.min_workers, gpus_of(placement) // shape.gpus)
            by_id[job_id] = of_job(job_id, gpu_type, workers)
    return tuple(by_id[job_id] for job_id in sorted(by_id))


def of_job(job_id: str, gpu_type: str, workers: int) -> AllottedGpus:
    return construct(AllottedGpus, job_id=job_id, gpu_type=gpu_type, workers=workers)
