"""Fits a gang on nodes: `place` takes its slots, worker by worker, where they fit best."""

from __future__ import annotations

from collections.abc import Iterable

from services.placement.core.pool.board import Board, could_hold, named_nodes
from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import GPU, Shape, Slot
from services.placement.core.pool.trial import Trial
from shared.contracts.gang_needs import NodeKind

Avoid = tuple[str, ...] | frozenset[str]


def too_few(board: Board, shape: Shape) -> bool:
    """Return whether fewer GPUs are free than the gang needs, wherever they are."""
    if shape.nodes:
        return False  # Free GPUs of cordoned nodes, which it may use, are not counted.
    return shape.milli == GPU and shape.min_workers * shape.gpus > board.free_of(shape.types)


def place(trial: Trial, shape: Shape, avoid: Avoid) -> list[Slot]:
    """Take slots for the gang on the trial and return them; none if fewer than its least fit."""
    board = trial.board
    if shape.nodes:
        return place_named(trial, shape)
    if too_few(board, shape):
        return []
    mark = len(trial.log)
    slots: list[Slot] = []
    while left := shape.max_workers - len(slots):
        new = board.best_fit(shape, left, avoid)
        if not new:
            break
        trial.take(new)
        slots += new
    if len(slots) < shape.min_workers:
        trial.rollback(mark)
        return []
    return slots


def place_named(trial: Trial, shape: Shape) -> list[Slot]:
    """Take a slot on each node that the shape names, in their order; none if one has no room.

    A part of such a gang is placed nowhere: it would measure other nodes.
    """
    nodes = named_nodes(trial.board, shape)
    if shape.max_workers != len(nodes) or not all(node.room(shape) for node in nodes):
        return []
    slots = [node.slots(shape, 1)[0] for node in nodes]
    trial.take(slots)
    return slots


def probe(trial: Trial, shape: Shape, avoid: Avoid, released: Iterable[Slot] = ()) -> list[Slot]:
    """Return slots for the gang once `released` is free as well; nothing stays taken."""
    mark = len(trial.log)
    trial.give(released)
    slots = place(trial, shape, avoid)
    trial.rollback(mark)
    return slots


def probe_anywhere(
    trial: Trial, shape: Shape, job: Job, released: Iterable[Slot] = ()
) -> list[Slot]:
    """Return the same for this job, on nodes that it avoids if there are no others."""
    released = list(released)
    slots = probe(trial, shape, job.avoid, released)
    return probe(trial, shape, (), released) if job.avoid and not slots else slots


def nodes_to_avoid(board: Board, job: Job, shape: Shape) -> tuple[str, ...]:
    """Return the nodes that failed the job, as long as the others could ever hold it."""
    if job.avoid and could_hold(board, shape, job.avoid) >= shape.min_workers:
        return job.avoid
    return ()


def would_hold(kinds: Iterable[NodeKind], shape: Shape) -> int:
    return sum(kind.workers(shape) for kind in kinds)


def fits_now(board: Board, shape: Shape) -> int:
    """Return how many workers fit now, counted up to the least that the gang needs."""
    if shape.nodes:
        return sum(node.room(shape) > 0 for node in named_nodes(board, shape))
    if shape.is_share:
        return shares_now(board, shape)
    workers = 0
    for name in board.upward(shape.types, shape.gpus):
        workers += board.nodes[name].room(shape)
        if workers >= shape.min_workers:
            return shape.min_workers
    return workers


def shares_now(board: Board, shape: Shape) -> int:
    as_many_as_fit = shape._replace(min_workers=1, max_workers=shape.min_workers)
    with Trial(board) as trial:
        return len(place(trial, as_many_as_fit, ()))
