"""Reservations: for a job whose victims are stopping, and for one that waited too long."""

from __future__ import annotations

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.draft import Draft
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import GPU, Shape, Slot
from services.placement.core.round.fit import probe_anywhere
from services.placement.core.round.view import View


def reserve_freed(view: View, draft: Draft, job: Job, shape: Shape) -> list[Slot]:
    """Reserve the slots that the job will get once its victims are gone; none if too few."""
    stopping = [
        victim
        for victim_id in view.reservations.get(job.job_id, {})
        if (victim := view.jobs.get(victim_id)) and victim.makes_room_for == job.job_id
    ]
    if not stopping:
        return []
    released = [slot for victim in stopping for slot in slots_of(victim)]
    return draft.reserve(probe_anywhere(draft, shape, job, released))


def reserve_roomiest(draft: Draft, shape: Shape, avoid: tuple[str, ...]) -> list[Slot]:
    """Reserve the roomiest nodes until the smallest gang of that shape has enough of them.

    Chosen anew each round: whatever becomes free may join, so the job starts in the end.
    """
    left = shape.min_workers
    wanted: list[Slot] = []
    for name in draft.board.downward(shape.types, 0):
        node = draft.board.nodes[name]
        workers = min(left, node.kind.workers(shape)) if name not in avoid else 0
        if workers:
            wanted += part_of(node, shape, workers)
            left -= workers
        if not left:
            return draft.reserve(wanted)
    return []


def part_of(node: Node, shape: Shape, workers: int) -> list[Slot]:
    """Return the freest GPUs of the node, enough for that many workers if they were empty."""
    per_gpu = GPU // shape.milli
    gpus = -(-workers // per_gpu) * shape.gpus
    freest = sorted(range(len(node.free)), key=lambda gpu: (-node.free[gpu], gpu))[:gpus]
    cpu, mem = workers * shape.cpu_milli, workers * shape.mem_mib
    return [Slot(node.node_id, tuple(freest), GPU, cpu, mem)]
