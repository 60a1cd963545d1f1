"""Small jobs go on elsewhere, so that a larger one that finds no room in one piece does.

Free GPUs that lie scattered over nodes are no use to a gang that wants whole ones. Where rank may
stop jobs, a job that nobody yields to has the nodes with the least in use emptied for it: whoever
runs there is moved (`migrate`), whatever its rank, for it loses no more than a restart. RULES.md,
13, is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.board import Draft, Node
from services.placement.core.pool.shape import GPU, Shape, Slot
from services.placement.core.pool.state import Job
from services.placement.core.round.evict import probe
from services.placement.core.round.fit import place, too_few
from services.placement.core.round.view import Moving, View

GATHERS_PER_ROUND = 2
"""Jobs for which others move in one round."""
TRIES_PER_ROUND = 8
"""Jobs that may look for such others: each look is at every node."""
MOVERS_MOST = 16
"""That move for one job."""
LEAST_SHARE = 2
"""All who move for a job have together at most 1 / so much of its GPUs."""


class Gathered(NamedTuple):
    """Who moves, and what the job will stand on once they have gone."""

    moves: list[Moving]
    slots: list[Slot]


class Home(NamedTuple):
    """A node with all who would have to leave it, the largest first."""

    gpus: int
    """In use by them."""
    node_id: str
    tier: int
    """Of the highest class among them."""
    movers: list[Job]


def may_gather(view: View, draft: Draft, shape: Shape) -> bool:
    """Would there be room if the free GPUs lay side by side?"""
    movable = view.victims.move_after_ms is not None
    return movable and not shape.is_share and shape.gpus > 0 and not too_few(draft.board, shape)


def gather(
    draft: Draft, homes: list[Home], job: Job, shape: Shape, busy: frozenset[str]
) -> Gathered | None:
    """None where no such moves are enough. The draft is left as it was.

    `busy`: jobs that this round stops, and nodes on which it starts some.
    """
    left = shape.min_workers * shape.gpus // LEAST_SHARE
    emptied: frozenset[str] = frozenset()
    moves: list[Moving] = []
    mark = len(draft.log)
    try:
        for home in candidates(draft, homes, job, shape, busy):
            if home.gpus > left:
                return None
            aims = {slot.node_id for moving in moves for slot in moving.slots}
            if home.node_id in aims or len(moves) + len(home.movers) > MOVERS_MOST:
                continue
            found = moved_away(draft, home, emptied | {home.node_id}, job)
            if found is None:
                continue
            moves += found
            left -= home.gpus
            emptied |= {home.node_id}
            if slots := probe(draft, shape, job):
                return Gathered(moves, slots)
        return None
    finally:
        draft.rollback(mark)


def candidates(
    draft: Draft, homes: list[Home], job: Job, shape: Shape, busy: frozenset[str]
) -> Iterator[Home]:
    """Of these those that would have room for one more worker if they were empty, and whose jobs
    are of the job's class or a lower one."""
    for home in homes:
        node = draft.board.nodes[home.node_id]
        if home.node_id in busy or home.node_id in job.avoid or not node.kind.workers(shape):
            continue
        if not is_half_free(node):
            continue
        if home.tier < job.tier or any(mover.job_id in busy for mover in home.movers):
            continue
        if (node.whole + home.gpus) // shape.gpus > node.whole // shape.gpus:
            yield home


def homes_of(view: View) -> list[Home]:
    """Nodes whose jobs may all move now: the least in use first, then by name. In a round GPUs only
    become fewer, so whatever is not half free now need not be looked at."""
    nodes = [node for node in view.board.nodes.values() if node.indexed and is_half_free(node)]
    return sorted(home for node in nodes if (home := home_of(view, node)))


def is_half_free(node: Node) -> bool:
    return 2 * node.whole >= node.kind.gpus


def home_of(view: View, node: Node) -> Home | None:
    """The jobs with GPUs of a node; None where there is none, or one has to stay."""
    movers = []
    for job_id in node.jobs:
        job = view.running[job_id]
        if not any(lease.slot.gpus for lease in job.leases.values()):
            continue
        if not is_movable(view, job):
            return None
        movers.append(job)
    if not movers:
        return None
    movers.sort(key=lambda job: (-job.gpus, job.job_id))
    gpus, tier = sum(round(job.gpus) for job in movers), min(job.tier for job in movers)
    return Home(gpus, node.node_id, tier, movers)


def is_movable(view: View, job: Job) -> bool:
    """One worker with whole GPUs, that ran long enough since it began or was last moved."""
    if len(job.leases) != 1 or job.phase != "running":
        return False
    (lease,) = job.leases.values()
    return lease.slot.milli == GPU and view.victims.moves_at(job) <= view.now


def moved_away(draft: Draft, home: Home, emptied: frozenset[str], by: Job) -> list[Moving] | None:
    """A place elsewhere for everybody on the node, taken on the draft; None: somebody has none."""
    mark = len(draft.log)
    found = []
    for mover in home.movers:
        alone = mover.shape._replace(min_workers=1, max_workers=1)
        slots = place(draft, alone, emptied.union(mover.avoid))
        if not slots:
            draft.rollback(mark)
            return None
        found.append(Moving(mover, slots, "defragment", by))
    for mover in home.movers:
        draft.give(slots_by_rank(mover))
    return found
