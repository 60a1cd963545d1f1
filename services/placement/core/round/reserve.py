"""Reservations: for a job whose victims are stopping, and for one that waited too long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.draft import Draft
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import GPU, Shape, Slot
from services.placement.core.round.fit import probe_anywhere
from services.placement.core.round.plan import Assignment
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


def late_gpus(view: View, assignments: Iterable[Assignment]) -> dict[str, set[int]]:
    """Return by node the GPUs of jobs placed since GPUs are reserved for the oldest job.

    `assignments` are those of this round.
    """
    late: dict[str, set[int]] = {}
    if view.oldest_from is None:
        return late
    placed = [slots_of(job) for job in view.running.values() if job.placed_at > view.oldest_from]
    for slots in (*placed, *(assignment.slots for assignment in assignments)):
        for slot in slots:
            late.setdefault(slot.node_id, set()).update(slot.gpus)
    return late


def reserve_roomiest(
    draft: Draft, shape: Shape, avoid: tuple[str, ...], late: Mapping[str, set[int]]
) -> list[Slot]:
    """Reserve the roomiest nodes until the smallest gang of that shape has enough of them.

    Chosen anew each round, first those where the fewest GPUs that the gang needs are `late`: no job
    starts on reserved GPUs, so all that hold them were there before, and the last to end is the
    latest at which the gang starts.
    """
    left = shape.min_workers
    wanted: list[Slot] = []
    nodes = draft.board.downward(shape.types, 0)
    if late:
        nodes = iter(sorted(nodes, key=lambda name: late_of(draft.board.nodes[name], shape, late)))
    for name in nodes:
        node = draft.board.nodes[name]
        workers = min(left, node.kind.workers(shape)) if name not in avoid else 0
        if workers:
            wanted += part_of(node, shape, workers)
            left -= workers
        if not left:
            return draft.reserve(wanted)
    return []


def late_of(node: Node, shape: Shape, late: Mapping[str, set[int]]) -> int:
    """Return how many GPUs that the gang would use on the node are late."""
    gpus = gpus_of(shape, min(shape.min_workers, node.kind.workers(shape)))
    return max(0, gpus - (node.kind.gpus - len(late.get(node.node_id, ()))))


def gpus_of(shape: Shape, workers: int) -> int:
    """Return the GPUs that so many workers need if these are empty."""
    per_gpu = GPU // shape.milli
    return -(-workers // per_gpu) * shape.gpus


def part_of(node: Node, shape: Shape, workers: int) -> list[Slot]:
    """Return the freest GPUs of the node, enough for that many workers if they were empty."""
    gpus = gpus_of(shape, workers)
    freest = sorted(range(len(node.free)), key=lambda gpu: (-node.free[gpu], gpu))[:gpus]
    cpu, mem = workers * shape.cpu_milli, workers * shape.mem_mib
    return [Slot(node.node_id, tuple(freest), GPU, cpu, mem)]
