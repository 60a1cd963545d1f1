"""Suspicions of nodes, and of single GPUs of them, as placement weighs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple


class Fading(NamedTuple):
    """A suspicion whose job has ended: forgotten at `until`, ms."""

    until: int
    node_id: str
    tenant: str = ""
    """The tenant whose job had it; empty: not known, or the history of a node."""


def slowest(
    slowdowns: Mapping[str, float], gpu_of: Mapping[str, int], gpus: Collection[int] | None
) -> float:
    """Return the worst slowdown of a node's suspicions, by their ids; 1 without any.

    `gpu_of` has the GPU of those that name one: of these only such count as are of one of `gpus`.
    None: all count.
    """
    return max(
        (
            slowdown
            for fault_id, slowdown in slowdowns.items()
            if gpus is None or fault_id not in gpu_of or gpu_of[fault_id] in gpus
        ),
        default=1.0,
    )


def slowest_by_gpu(slowdowns: Mapping[str, float], gpu_of: Mapping[str, int]) -> dict[int, float]:
    """Return the worst slowdown of each GPU that a suspicion of the node names."""
    worst: dict[int, float] = {}
    for fault_id, slowdown in slowdowns.items():
        if (gpu := gpu_of.get(fault_id)) is not None:
            worst[gpu] = max(slowdown, worst.get(gpu, 1.0))
    return worst
