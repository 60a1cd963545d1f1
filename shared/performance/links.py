"""Seconds of a step of data-parallel training by the links that its gang spans.

An all-reduce is a ring over all GPUs: each of the 2 (g - 1) turns costs a latency and sends a g-th
of the gradients over the slowest link of the ring (Patarasuk and Yuan, "Bandwidth optimal
all-reduce algorithms for clusters of workstations", JPDC 2009). Part of the communication hides
behind the backward computation of the same step (Li et al., "PyTorch Distributed", VLDB 2020). A
link that was not measured is None, and so are the seconds over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class LinkTier(IntEnum):
    """The smallest part of a cluster that holds a gang: its node, its rack, or several racks."""

    NODE = 0
    RACK = 1
    SPINE = 2


class Link(NamedTuple):
    """Latency of a message, s, and bytes per second of one ring over the link."""

    latency_s: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class TieredLinks:
    """The slowest link of a gang by its tier; None: not measured."""

    node: Link | None = None
    rack: Link | None = None
    spine: Link | None = None

    def of(self, tier: LinkTier) -> Link | None:
        return (self.node, self.rack, self.spine)[tier]


def all_reduce_s(gpus: int, size_bytes: float, link: Link) -> float:
    """Return the seconds of an all-reduce of so many bytes on each of the GPUs."""
    turns = 2 * (gpus - 1)
    return turns * (link.latency_s + size_bytes / gpus / link.bytes_per_s)


@dataclass(frozen=True, slots=True)
class GangSteps:
    """A step: `compute_s` on each GPU, and an all-reduce of `gradient_bytes`.

    `overlap` is the part of the computation behind which the all-reduce can hide, 0 to 1.
    """

    compute_s: float
    gradient_bytes: float
    links: TieredLinks
    overlap: float = 0.0

    def step_s(self, gpus: int, tier: LinkTier) -> float | None:
        """Return the seconds of a step alone on the tier; None where its link is unknown."""
        if gpus <= 1:
            return self.compute_s
        link = self.links.of(tier)
        return None if link is None else self.step_with(self.sync_s(gpus, link))

    def sync_s(self, gpus: int, link: Link) -> float:
        return all_reduce_s(gpus, self.gradient_bytes, link)

    def step_with(self, sync_s: float) -> float:
        """Return the seconds of a step of which the all-reduce takes so many."""
        return self.compute_s + max(sync_s - self.overlap * self.compute_s, 0.0)

    def slowdown(self, gpus: int, tier: LinkTier, best: LinkTier) -> float | None:
        """Return how many times as long a step takes as on a better tier; None if unknown."""
        slow, fast = self.step_s(gpus, tier), self.step_s(gpus, best)
        return None if slow is None or fast is None else slow / fast
