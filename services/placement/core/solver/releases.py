"""The next GPUs that running jobs should give back, by the estimates of their run times.

An estimate is that on one node with GPUs of speed 1: a job on slower ones is over later.
"""

from __future__ import annotations

from typing import NamedTuple

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import GPU
from services.placement.core.round.view import View
from services.placement.core.solver.speeds import links_of
from shared.contracts.checkpoint import speed

RELEASES = 24
"""Releases that are looked at, the next ones first."""
MOST_MS = 366 * 86_400_000
"""Time until a release that is looked at, at most."""


class NodeRelease(NamedTuple):
    """GPUs of a node that a running job should give back at `at` ms."""

    at: int
    node: Node
    gpus: int


def next_releases(view: View) -> list[NodeRelease]:
    """Return the next releases of whole GPUs, in the order of (time, node)."""
    releases = [
        NodeRelease(end, view.board.nodes[node_id], gpus)
        for job in view.running.values()
        if (end := end_by_speed(view, job)) is not None
        for node_id, gpus in whole_by_node(job).items()
        if node_id in view.board.nodes and view.board.nodes[node_id].indexed
    ]
    releases.sort(key=lambda release: (release.at, release.node.node_id, release.gpus))
    return releases[:RELEASES]


def whole_by_node(job: Job) -> dict[str, int]:
    gpus: dict[str, int] = {}
    for slot in slots_of(job):
        if slot.gpus and slot.milli == GPU:
            gpus[slot.node_id] = gpus.get(slot.node_id, 0) + len(slot.gpus)
    return gpus


def end_by_speed(view: View, job: Job) -> int | None:
    """Return the ms, after now, when a running job should end at its speed; None if unknown.

    An estimate that was overrun is doubled once: a job that runs for longer is not waited for.
    """
    run_ms = job.estimate_ms(view.time_scale)
    if run_ms is None or job.phase == "stopping":
        return None
    slots = slots_of(job)
    nodes = [view.board.nodes[slot.node_id] for slot in slots if slot.node_id in view.board.nodes]
    if len(nodes) < len(slots):
        return None
    types = {node.kind.gpu_type for node in nodes}
    run_ms = max(1, round(run_ms / speed(job.spec, len(slots), types, links_of(view.board, slots))))
    began = job.started_at or job.placed_at or view.now
    if began + run_ms <= view.now:
        run_ms *= 2
    return began + run_ms if view.now < began + run_ms <= view.now + MOST_MS else None
