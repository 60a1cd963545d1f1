"""Nodes to put on a board."""

from __future__ import annotations

from services.placement.core.pool.node import Kind, Node
from services.placement.core.pool.shape import GPU, MIB


def node(name: str, gpus: int = 8) -> Node:
    kind = Kind("a100", gpus, 64_000, 512 * MIB, ())
    return Node(name, "i1", "virtual", kind, {}, [GPU] * gpus, gpus, 64_000, 512 * MIB)
