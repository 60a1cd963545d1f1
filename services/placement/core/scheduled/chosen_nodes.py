"""Nodes that a scheduler chose for a gang, checked as those of any plan are.

A worker is placed on a chosen node that is in use, has GPUs of the allotted type and the room, and
did not fail the job. Nothing is placed there beyond that: what has no room waits for what stops
there, and where nothing stops the rules of the pool choose other nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.board import Board
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Node
from services.placement.core.pool.schedule import Allotted
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.scheduled.allotments import nodes_of
from services.placement.core.scheduled.claims import allotted_shape

Leaving: TypeAlias = Mapping[str, frozenset[str]]
"""By node, the jobs that stop there or are about to."""


def take_chosen(
    trial: Trial, shape: Shape, own: Allotted, closed: Collection[str] = ()
) -> list[Slot]:
    """Take slots for the gang on its chosen nodes and return them; none if one may not have it."""
    mark = len(trial.log)
    slots: list[Slot] = []
    for node_id, workers in own.nodes:
        node = trial.board.nodes.get(node_id)
        is_open = node is not None and takes(node, own) and node_id not in closed
        if node is None or not is_open or node.room(shape) < workers:
            trial.rollback(mark)
            return []
        new = node.slots(shape, workers)
        trial.take(new)
        slots += new
    return slots


def target_of(trial: Trial, job: Job, own: Allotted) -> list[Slot]:
    """Return the slots of a running job on its chosen nodes, those that it has there first.

    There are none if a node may not have its workers.
    """
    kept, missing = split(job, own)
    mark = len(trial.log)
    new = take_chosen(trial, allotted_shape(job, own), own._replace(nodes=missing), job.avoid)
    trial.rollback(mark)
    return kept + new if new or not missing else []


def split(job: Job, own: Allotted) -> tuple[list[Slot], tuple[tuple[str, int], ...]]:
    """Return what a job holds on its chosen nodes, in rank order, and the workers that lack."""
    workers = dict(own.nodes)
    kept: list[Slot] = []
    for slot in slots_by_rank(job):
        if workers.get(slot.node_id, 0) > 0:
            workers[slot.node_id] -= 1
            kept.append(slot)
    return kept, tuple((node_id, count) for node_id, count in workers.items() if count)


def awaited_nodes(trial: Trial, job: Job, own: Allotted, leaving: Leaving) -> list[str]:
    """Return the chosen nodes without room, if other jobs leave each of them; else none.

    None is waited for where one of the nodes could not have its workers if it were empty.
    """
    shape, awaited = allotted_shape(job, own), []
    for node_id, workers in split(job, own)[1]:
        node = trial.board.nodes.get(node_id)
        if node is None or not takes(node, own) or node.kind.workers(shape) < workers:
            return []
        if node.room(shape) < workers:
            if not leaving.get(node_id, frozenset()) - {job.job_id}:
                return []
            awaited.append(node_id)
    return awaited


def takes(node: Node, own: Allotted) -> bool:
    """Return whether something may start on the node, on GPUs of the allotted type."""
    return node.indexed and node.kind.gpu_type == own.gpu_type


def is_elsewhere(job: Job, own: Allotted) -> bool:
    """Return whether a running job has workers on other nodes than those chosen for it."""
    return bool(own.nodes) and nodes_of(slots_by_rank(job)) != tuple(sorted(own.nodes))


def health_of(board: Board, slots: Collection[Slot]) -> float:
    """Return the health of the slowest slot, 1 for a healthy one."""
    return min((board.health(slot.node_id, slot.gpus) for slot in slots), default=1.0)
