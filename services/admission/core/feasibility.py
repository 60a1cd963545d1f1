"""Feasibility: counts the workers of a gang that the nodes could hold if all were empty."""

from __future__ import annotations

from collections.abc import Mapping

from shared.contracts.gang_needs import NodeKind, Shape


def fits(node_kinds: Mapping[NodeKind, int], shape: Shape) -> bool:
    return count_workers(node_kinds, shape) >= shape.min_workers


def count_workers(node_kinds: Mapping[NodeKind, int], shape: Shape) -> int:
    """Return how many workers empty nodes hold at once; counting stops when the gang fits."""
    workers = 0
    for kind, nodes in node_kinds.items():
        workers += nodes * kind.workers(shape)
        if workers >= shape.min_workers:
            break
    return workers
