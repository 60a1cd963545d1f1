"""Reservations: for a job whose victims are stopping, and for one that waited too long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import GPU, Shape, Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import probe_anywhere
from services.placement.core.round.plan import Assignment
from services.placement.core.round.view import View


def reserve_freed(view: View, trial: Trial, job: Job, shape: Shape) -> list[Slot]:
    """Reserve the slots that the job will get once its victims are gone; none if too few."""
    stopping = [
        victim
        for victim_id in view.reservations.get(job.job_id, {})
        if (victim := view.jobs.get(victim_id)) and victim.makes_room_for == job.job_id
    ]
    if not stopping:
        return []
    released = [slot for victim in stopping for slot in slots_of(victim)]
    return trial.reserve(probe_anywhere(trial, shape, job, released))


@dataclass(slots=True)
class HeldPart:
    """The part of a node that some of its jobs hold."""

    gpus: set[int] = field(default_factory=set)
    cpu_milli: int = 0
    mem_mib: int = 0


class NodeOrder(NamedTuple):
    """Holders that make a node a worse choice for the overdue job, by node."""

    late: Mapping[str, HeldPart] = {}
    """Jobs placed since GPUs are reserved for it."""
    outlasting: Mapping[str, HeldPart] = {}
    """Jobs that outlasted the last reservation that lapsed."""

    def key_of(self, node: Node, shape: Shape) -> tuple[int, int]:
        """Return how many workers of the gang the late, and the outlasting ones, leave no room for.

        The late ones count first: as long as nodes without them are enough, the gang starts when
        the jobs have ended that were there before.
        """
        return missing(node, shape, self.late), missing(node, shape, self.outlasting)


def node_order(view: View, assignments: Iterable[Assignment]) -> NodeOrder:
    """Return the order of the overdue job's nodes; `assignments` are those of this round."""
    from_ms, lapsed_from_ms = view.overdue.from_ms, view.lapsed_from_ms
    running = view.running.values()
    late: dict[str, HeldPart] = {}
    if from_ms is not None:
        starts = [slots_of(job) for job in running if job.placed_at > from_ms]
        late = held_parts([*starts, *(assignment.slots for assignment in assignments)])
    old = [slots_of(job) for job in running if job.placed_at <= lapsed_from_ms]
    return NodeOrder(late, held_parts(old))


def held_parts(held: Iterable[Iterable[Slot]]) -> dict[str, HeldPart]:
    """Return by node what these slots take; a share counts as a whole GPU."""
    parts: dict[str, HeldPart] = {}
    for slot in (slot for slots in held for slot in slots):
        part = parts.setdefault(slot.node_id, HeldPart())
        part.gpus.update(slot.gpus)
        part.cpu_milli += slot.cpu_milli
        part.mem_mib += slot.mem_mib
    return parts


def missing(node: Node, shape: Shape, held: Mapping[str, HeldPart]) -> int:
    """Return how many workers that the node would get have no room beside these holders."""
    part, kind = held.get(node.node_id), node.kind
    if part is None:
        return 0
    needed = min(shape.min_workers, kind.workers(shape))
    left = kind._replace(
        gpus=kind.gpus - len(part.gpus),
        cpu_milli=kind.cpu_milli - part.cpu_milli,
        mem_mib=kind.mem_mib - part.mem_mib,
    )
    return max(0, needed - left.workers(shape))


def reserve_roomiest(
    trial: Trial, shape: Shape, avoid: tuple[str, ...], order: NodeOrder
) -> list[Slot]:
    """Reserve the roomiest nodes until the smallest gang of that shape has enough of them.

    Chosen anew each round, first those with the least `order`: no job starts on reserved GPUs, so
    all that hold them were there before, and the last to end is the latest at which the gang
    starts.
    """
    left = shape.min_workers
    parts: list[Slot] = []
    nodes = trial.board.downward(shape.types, 0)
    if order.late or order.outlasting:
        nodes = iter(sorted(nodes, key=lambda name: order.key_of(trial.board.nodes[name], shape)))
    for name in nodes:
        node = trial.board.nodes[name]
        workers = min(left, node.kind.workers(shape)) if name not in avoid else 0
        if workers:
            parts += part_of(node, shape, workers)
            left -= workers
        if not left:
            return trial.reserve(parts)
    return []


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
