"""Nodes to put on a board."""

from __future__ import annotations

from services.placement.core.pool.node import Node
from shared.contracts.gang_needs import GPU, MIB, NodeKind


def node(name: str, gpus: int = 8) -> Node:
    kind = NodeKind("a100", gpus, 64_000, 512 * MIB, ())
    return Node(name, "i1", "virtual", kind, {}, [GPU] * gpus, gpus, 64_000, 512 * MIB)
