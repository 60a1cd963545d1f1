"""Waits of gangs for closer GPUs: the links that the next releases should open to them.

A gang that declares its speeds over links may be over sooner if it waits until a node, or a rack,
has room for it. What is free now and is given back up to a moment counts, as if no other job took
it meanwhile; each round decides anew, and the gang's patience has an end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from services.placement.core.pool.job import Job
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
    room = GangRoom(request)
    avoid = nodes_to_avoid(view.board, job, job.shape)
    free: dict[str, int] = {}
    for node in view.board.nodes.values():
        if node.indexed and node.node_id not in avoid and may_run_on(job.shape, node):
            free[node.node_id] = node.whole
            room.shift(node.rack, speed_on(view.board, job, node), 0, node.whole)
    best = room.fastest()
    for at, node, gpus in releases:
        if node.node_id not in free:
            continue
        before, free[node.node_id] = free[node.node_id], free[node.node_id] + gpus
        room.shift(node.rack, speed_on(view.board, job, node), before, free[node.node_id])
        if (own := room.fastest()) > best:
            best = own
            yield Opening(at, own)


class GangRoom:
    """Workers of one gang that fit on nodes of each speed; GPUs are only added."""

    def __init__(self, request: GangRequest) -> None:
        assert request.spread is not None, "the gang declares its links"
        self.request = request
        self.links = (GPU, *request.spread)
        self.on_node: dict[int, int] = {}
        """By thousandths of speed: most workers on one node."""
        self.by_rack: dict[int, dict[str, int]] = {}

    def shift(self, rack: str, speed: int, before: int, after: int) -> None:
        """Note that a node has `after` free GPUs, of which `before` were noted already."""
        workers = after // self.request.gpus
        racks = self.by_rack.setdefault(speed, {})
        racks[rack] = racks.get(rack, 0) + workers - before // self.request.gpus
        self.on_node[speed] = max(self.on_node.get(speed, 0), workers)

    def fastest(self) -> int:
        """Return thousandths of full speed on the best nodes; 0 where the gang has no room."""
        best, on_node, by_rack = 0, 0, dict[str, int]()
        for level in sorted(self.by_rack, reverse=True):
            on_node = max(on_node, self.on_node[level])
            for rack, workers in self.by_rack[level].items():
                by_rack[rack] = by_rack.get(rack, 0) + workers
            rooms = (on_node, max(by_rack.values()), sum(by_rack.values()))
            for room, link in zip(rooms, self.links, strict=True):
                if room >= self.request.min_workers:
                    best = max(best, level * link // GPU)
        return best
