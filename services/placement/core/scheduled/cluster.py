"""The pool as its scheduler sees it: jobs with whole GPUs, and the nodes that take work.

Times are cluster seconds. What cannot change is no part of it: jobs with a part of a GPU or none,
validations of nodes, and jobs on nodes that are cordoned or lost keep what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.board import could_hold
from services.placement.core.pool.job import Job
from services.placement.core.pool.queue import QueueScan
from services.placement.core.pool.state import Pool
from services.placement.core.round.protection import movable_from_ms
from services.placement.core.scheduled.claims import holds_in_view, is_scattered, is_scheduled
from services.placement.core.scheduled.estimates import estimates_of
from shared.schedulers.hooks import Hooks
from shared.schedulers.view import CandidateJob, ClusterView, Placement, TypedNode


def cluster_view(pool: Pool, now: int, most_waiting: int = Hooks.most_waiting) -> ClusterView:
    """Return the pool at `now` ms, with so many waiting jobs at most."""
    assert pool.settings is not None
    in_view = {job.job_id: job for job in pool.running.values() if holds_in_view(pool, job)}
    stopping = (
        job
        for job in pool.running.values()
        if will_wait(job) and job.job_id not in pool.migrations and may_wait(pool, job)
    )
    seen = {
        **in_view,
        **{job.job_id: job for job in stopping},
        **{job.job_id: job for job in first_waiting(pool, most_waiting)},
    }
    nodes = typed_nodes(pool, in_view)
    types = tuple(sorted({node.gpu_type for node in nodes}))
    return ClusterView(
        now_s=now / 1000 * pool.time_scale,
        round_number=pool.schedule.number,
        seed=pool.partition,
        round_s=pool.settings.scheduler_round_s,
        jobs=tuple(candidate(pool, seen[job_id], types, now) for job_id in sorted(seen)),
        nodes=nodes,
    )


def first_waiting(pool: Pool, most: int) -> list[Job]:
    """Return the waiting jobs that the scheduler sees: so many of the queue, its first ones."""
    waiting = map(pool.waiting.__getitem__, QueueScan(pool.queue))
    candidates = (job for job in waiting if may_wait(pool, job) and not is_scattered(pool, job))
    return list(islice(candidates, most))


def will_wait(job: Job) -> bool:
    """Return whether the job waits for GPUs once it has stopped."""
    return job.phase == "stopping" and job.stop == "preempted"


def may_wait(pool: Pool, job: Job) -> bool:
    """Return whether the scheduler decides about the job, and the pool could hold its gang if it
    were empty.
    """
    return is_scheduled(job) and could_hold(pool.board, job.shape, ()) >= job.shape.min_workers


def typed_nodes(pool: Pool, in_view: Mapping[str, Job]) -> tuple[TypedNode, ...]:
    """Return the nodes that take work, without the GPUs of jobs that are not in the view.

    What stops now counts as free: its GPUs are released before the next proposal. What is reserved
    for a job that stops to go on there does not.
    """
    price = pool.settings.gpu_hour_price if pool.settings else 0.0
    held = {node_id: set[int]() for node_id in pool.board.nodes}
    for job in pool.running.values():
        if job.job_id in in_view:
            continue
        slots = pool.migrations.get(job.job_id, ()) if job.phase == "stopping" else slots_of(job)
        for slot in slots:
            if slot.node_id in held:
                held[slot.node_id].update(slot.gpus)
    return tuple(
        TypedNode(name, node.kind.gpu_type, node.kind.gpus - len(held[name]), node.rack, price)
        for name, node in sorted(pool.board.nodes.items())
        if node.indexed and node.kind.gpus > len(held[name])
    )


def candidate(pool: Pool, job: Job, types: tuple[str, ...], now: int) -> CandidateJob:
    """Return the job as schedulers see it; one that may not move now is not preemptible."""
    shape, scale = job.shape, pool.time_scale
    held_ms = job.held_ms + job.ran_ms(now)
    held_gpu_ms = job.held_gpu_ms + job.ran_ms(now) * job.gpus
    holds = holds_in_view(pool, job)
    return CandidateJob(
        job_id=job.job_id,
        submit_s=min(job.submitted_at, now) / 1000 * scale,
        gpus=job.spec.gang.workers * shape.gpus,
        min_gpus=shape.min_workers * shape.gpus,
        max_gpus=shape.max_workers * shape.gpus,
        tenant=job.tenant,
        gpu_types=shape.types,
        preemptible=not holds or movable_from_ms(job, pool.min_residency_ms, scale) <= now,
        placement=placement_of(job) if holds else (),
        held_s=held_ms / 1000 * scale,
        held_gpu_s=held_gpu_ms / 1000 * scale,
        restarts=max(0, job.starts - 1),
        estimates=estimates_of(pool, job, types, now),
    )


def placement_of(job: Job) -> Placement:
    """Return the GPUs of a job by node."""
    gpus: dict[str, int] = {}
    for slot in slots_of(job):
        gpus[slot.node_id] = gpus.get(slot.node_id, 0) + len(slot.gpus)
    return tuple(sorted(gpus.items()))
