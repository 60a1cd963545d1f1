"""Speeds of jobs on the nodes of a pool: by GPU type, by links, and what greedy's plan leaves."""

from __future__ import annotations

from collections.abc import Sequence

from services.placement.core.pool.board import Board
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import GPU, Shape, Slot
from shared.contracts.checkpoint import spread_of, type_speed
from shared.contracts.gang_needs import matches
from shared.contracts.job_spec import Spread


def may_run_on(shape: Shape, node: Node) -> bool:
    """Return whether GPU type and labels of the node are as requested."""
    typed = not shape.types or node.kind.gpu_type in shape.types
    return typed and matches(shape, node.labels)


def speed_on(board: Board, job: Job, node: Node) -> int:
    """Return thousandths of the best speed that the job could have in this pool.

    Of slow GPUs those count that it gets if as many of its workers run there as fit.
    """
    own = type_speed(job.spec, node.kind.gpu_type) / best_speed(board, job)
    return max(1, round(GPU * own * health_on(board, job.shape, node)))


def health_on(board: Board, shape: Shape, node: Node) -> float:
    """Return the health of a node for the workers of a gang that fit there."""
    if shape.is_share or not shape.gpus:
        return board.health(node.node_id, None if shape.is_share else ())
    workers = max(1, min(shape.max_workers, node.whole // shape.gpus))
    return board.health_for(node.node_id, workers * shape.gpus)


def best_speed(board: Board, job: Job) -> float:
    """Return the speed of the job on its best GPU type of the pool."""
    return max(speeds_in(board, job), default=1.0) if job.spec.gpu_speeds else 1.0


def speeds_in(board: Board, job: Job) -> set[float]:
    """Return the speeds of the job on the GPU types of the pool that it may have."""
    allowed = job.shape.types
    types = {k.gpu_type for k in board.kinds if not allowed or k.gpu_type in allowed}
    return {type_speed(job.spec, name) for name in types}


def spread_in(board: Board, job: Job, shape: Shape) -> tuple[int, int] | None:
    """Return the thousandths of its speed that the gang has over nodes of a rack, and over racks.

    They are relative to one node, or to one rack for a gang that no node could hold. None: the job
    does not declare them, or is on one node in any case.
    """
    declared = job.spec.spread_speeds
    if not declared or shape.max_workers == 1:
        return None
    rack, spine = (declared.get(links, 1.0) for links in ("rack", "spine"))
    fits = any(kind.workers(shape) >= shape.min_workers for kind in board.kinds)
    best = 1.0 if fits else rack
    over_nodes, over_racks = (min(1.0, own / best) for own in (rack, min(rack, spine)))
    return max(1, round(GPU * over_nodes)), max(1, round(GPU * over_racks))


def is_slowed(board: Board, job: Job, slots: Sequence[Slot]) -> bool:
    """Return whether types or links leave a job that declares its speeds less than its best."""
    if not job.spec.gpu_speeds and not job.spec.spread_speeds:
        return False
    best = best_speed(board, job)
    nodes = [board.nodes[slot.node_id] for slot in slots]
    if any(type_speed(job.spec, node.kind.gpu_type) < best for node in nodes):
        return True
    spread = spread_in(board, job, job.shape)
    links = links_of(board, slots)
    return spread is not None and links is not None and spread[links == "spine"] < GPU


def links_of(board: Board, slots: Sequence[Slot]) -> Spread | None:
    """Return the links between the nodes of these slots; None: there is one node."""
    names = {slot.node_id for slot in slots}
    return spread_of(names, {name: board.nodes[name].rack for name in names})
