"""Best fit: whole GPUs of a worker on one node, gangs on few nodes, shares on GPUs in use."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from services.placement.core.pool.board import Board
from services.placement.core.pool.draft import Draft
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Kind, Node
from services.placement.core.pool.shape import GPU, Shape, Slot

Avoid = tuple[str, ...] | frozenset[str]


def too_few(board: Board, shape: Shape) -> bool:
    """Whether fewer GPUs are free than the gang needs, wherever they are."""
    return shape.milli == GPU and shape.min_workers * shape.gpus > board.free_of(shape.types)


def place(draft: Draft, shape: Shape, avoid: Avoid) -> list[Slot]:
    """Take slots for the gang on the draft and return them; none if fewer than its least fit."""
    if too_few(draft.board, shape):
        return []
    mark = len(draft.log)
    slots = (
        place_shares(draft, shape, avoid) if shape.is_share else place_whole(draft, shape, avoid)
    )
    if len(slots) < shape.min_workers:
        draft.rollback(mark)
        return []
    return slots


def probe(draft: Draft, shape: Shape, avoid: Avoid, released: Iterable[Slot] = ()) -> list[Slot]:
    """Return slots for the gang once `released` is free as well; nothing stays taken."""
    mark = len(draft.log)
    draft.give(released)
    slots = place(draft, shape, avoid)
    draft.rollback(mark)
    return slots


def probe_anywhere(
    draft: Draft, shape: Shape, job: Job, released: Iterable[Slot] = ()
) -> list[Slot]:
    """Return the same for this job, on nodes that it avoids if there are no others."""
    released = list(released)
    slots = probe(draft, shape, job.avoid, released)
    return probe(draft, shape, (), released) if job.avoid and not slots else slots


def place_whole(draft: Draft, shape: Shape, avoid: Avoid) -> list[Slot]:
    """Take the node that holds all that is left and has least over, else the roomiest; repeat."""
    slots: list[Slot] = []
    board = draft.board
    while left := shape.max_workers - len(slots):
        node = snug(board, shape, left, avoid) or roomiest(board, shape, avoid)
        if node is None:
            break
        new = node.slots(shape, min(left, node.room(shape)))
        draft.take(new)
        slots += new
    return slots


def snug(board: Board, shape: Shape, workers: int, avoid: Avoid) -> Node | None:
    """Return the node with the fewest free GPUs that holds so many workers."""
    for name in board.upward(shape.types, workers * shape.gpus):
        node = board.nodes[name]
        if node.room(shape) >= workers and name not in avoid:
            return node
    return None


def roomiest(board: Board, shape: Shape, avoid: Avoid) -> Node | None:
    """Return the node with the most free GPUs that holds a worker."""
    for name in board.downward(shape.types, shape.gpus):
        node = board.nodes[name]
        if node.room(shape) and name not in avoid:
            return node
    return None


def place_shares(draft: Draft, shape: Shape, avoid: Avoid) -> list[Slot]:
    slots: list[Slot] = []
    while len(slots) < shape.max_workers:
        slot = share(draft.board, shape, avoid)
        if slot is None:
            break
        draft.take((slot,))
        slots.append(slot)
    return slots


def share(board: Board, shape: Shape, avoid: Avoid) -> Slot | None:
    """Return the fullest GPU that has room; an unused one is opened only when none has."""
    types = shape.types or tuple(board.shares)
    candidates = [best for name in types if (best := tightest(board, name, shape, avoid))]
    if candidates:
        _, node_id, gpu = min(candidates)
        return Slot(node_id, (gpu,), shape.milli, shape.cpu_milli, shape.mem_mib)
    node = snug(board, shape, 1, avoid)
    return node.slots(shape, 1)[0] if node else None


def tightest(
    board: Board, gpu_type: str, shape: Shape, avoid: Avoid
) -> tuple[int, str, int] | None:
    """Return the fullest GPU that has room; of equals that on the healthiest node, then by name."""
    partly = board.shares.get(gpu_type, [])
    best: tuple[int, str, int] | None = None
    for at in range(bisect_left(partly, (shape.milli, "", 0)), len(partly)):
        name = partly[at][1]
        if best is not None and partly[at][0] > best[0]:
            break
        if board.nodes[name].hosts(shape) and name not in avoid:
            if board.health(name) == 1:
                return partly[at]
            if best is None or board.health(name) > board.health(best[1]):
                best = partly[at]
    return best


def could_hold(board: Board, shape: Shape, avoid: Avoid) -> int:
    """Return how many workers the nodes in use would hold if they were empty."""
    workers = sum(kind.workers(shape) * count for kind, count in board.kinds.items())
    for name in avoid:
        node = board.nodes.get(name)
        if node is not None and node.indexed:
            workers -= node.kind.workers(shape)
    return workers


def nodes_to_avoid(board: Board, job: Job, shape: Shape) -> tuple[str, ...]:
    """Return the nodes that failed the job, as long as the others could ever hold it."""
    if job.avoid and could_hold(board, shape, job.avoid) >= shape.min_workers:
        return job.avoid
    return ()


def would_hold(kinds: Iterable[Kind], shape: Shape) -> int:
    return sum(kind.workers(shape) for kind in kinds)


def fits_now(board: Board, shape: Shape) -> int:
    """Return how many workers fit now, counted up to the least that the gang needs."""
    if shape.is_share:
        return shares_now(board, shape)
    workers = 0
    for name in board.upward(shape.types, shape.gpus):
        workers += board.nodes[name].room(shape)
        if workers >= shape.min_workers:
            return shape.min_workers
    return workers


def shares_now(board: Board, shape: Shape) -> int:
    with Draft(board) as draft:
        return len(place_shares(draft, shape._replace(max_workers=shape.min_workers), ()))
