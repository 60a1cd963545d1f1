"""Waits of gangs for closer GPUs: the links that the next releases should open to them.

A gang that declares its speeds over links may be over sooner if it waits until a node, or a rack,
has room for it. What is free now and is given back up to a moment counts, as if no other job took
it meanwhile; each round decides anew, and the gang's patience has an end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import GPU
from services.placement.core.round.fit import nodes_to_avoid
from services.placement.core.round.view import View
from services.placement.core.solver.instance import GangRequest
from services.placement.core.solver.releases import NodeRelease
from services.placement.core.solver.speeds import may_run_on, speed_on


class Opening(NamedTuple):
    """The moment, ms, from which on the gang should have closer links, and the speed there."""

    at: int
    speed: int


def openings_of(
    view: View, job: Job, request: GangRequest, releases: Sequence[NodeRelease]
) -> Iterator[Opening]:
    """Yield the first moment of each better speed, in order of time; the speed is without delay."""
    assert request.spread is not None, "the gang declares its links"
    avoid = nodes_to_avoid(view.board, job, job.shape)
    nodes = {
        node.node_id: node
        for node in view.board.nodes.values()
        if node.indexed and node.node_id not in avoid and may_run_on(job.shape, node)
    }
    free = {name: node.whole for name, node in nodes.items()}
    speeds = {name: speed_on(view.board, job, node) for name, node in nodes.items()}
    best = fastest(request, nodes, free, speeds)
    for at, node, gpus in releases:
        if node.node_id not in free:
            continue
        free[node.node_id] += gpus
        own = fastest(request, nodes, free, speeds)
        if own > best:
            best = own
            yield Opening(at, own)


def fastest(
    request: GangRequest, nodes: dict[str, Node], free: dict[str, int], speeds: dict[str, int]
) -> int:
    """Return thousandths of full speed on the best nodes for the gang; 0 where it has no room."""
    assert request.spread is not None, "the gang declares its links"
    best = 0
    for level in set(speeds.values()):
        on_node, by_rack = 0, dict[str, int]()
        for name, node in nodes.items():
            if speeds[name] >= level:
                room = free[name] // request.gpus
                on_node = max(on_node, room)
                by_rack[node.rack] = by_rack.get(node.rack, 0) + room
        need = request.min_workers
        ways = ((on_node, GPU), (max(by_rack.values()), request.spread[0]))
        for room, link in (*ways, (sum(by_rack.values()), request.spread[1])):
            if room >= need:
                best = max(best, level * link // GPU)
    return best
