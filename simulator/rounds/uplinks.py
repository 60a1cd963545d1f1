"""Racks whose uplinks to the spine are shared by the gangs that cross them.

Each ring sends one stream out of each of its racks. Of an uplink a stream gets a share by the
streams there that are sent at the same time: gangs communicate for a part of each step, at times
that are taken to be independent, so a stream meets as many others as their parts sum up to. Parts
depend on shares and shares on parts; from the most contended state on they converge. What a stream
that another link slows down leaves of its share is unused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shared.performance.links import GangSteps, Link, LinkTier
from shared.schedulers.hooks import Scheduler
from shared.schedulers.view import TypedNode
from simulator.rounds.job import RoundsJob
from simulator.rounds.linked_work import LinkedWork
from simulator.rounds.world import RoundsOptions, RoundsWorld

MOST_TURNS = 100
CLOSE = 1e-3
"""Change of a part in one turn, from which on shares count as converged."""


class Crossing(NamedTuple):
    """A gang over several racks: its steps, its GPUs, and its racks."""

    steps: GangSteps
    gpus: int
    racks: frozenset[str]


def shares_of(crossings: Sequence[Crossing], uplink_bytes_per_s: float) -> list[float]:
    """Return the bytes per second of each gang's stream over uplinks of this capacity."""
    busy = [1.0] * len(crossings)
    shares = [uplink_bytes_per_s] * len(crossings)
    for _ in range(MOST_TURNS):
        streams: dict[str, float] = {}
        for own, part in zip(crossings, busy, strict=True):
            for rack in own.racks:
                streams[rack] = streams.get(rack, 0.0) + part
        shares = [
            uplink_bytes_per_s / (1.0 + max(streams[rack] for rack in own.racks) - part)
            for own, part in zip(crossings, busy, strict=True)
        ]
        before, busy = busy, list(map(part_of, crossings, shares))
        if all(abs(new - old) < CLOSE for new, old in zip(busy, before, strict=True)):
            break
    return shares


def part_of(crossing: Crossing, share: float) -> float:
    """Return the part of a step in which the gang's stream is sent."""
    spine = crossing.steps.links.spine
    assert spine is not None, "a gang that crosses racks has links there"
    link = Link(spine.latency_s, min(spine.bytes_per_s, share))
    sync_s = crossing.steps.sync_s(crossing.gpus, link)
    return sync_s / crossing.steps.step_with(sync_s)


class RackedWorld(RoundsWorld):
    """A world in which each rack has one uplink. Shares hold from a decision to the next one."""

    def __init__(
        self,
        jobs: Sequence[RoundsJob],
        nodes: Sequence[TypedNode],
        scheduler: Scheduler,
        options: RoundsOptions,
        uplink_bytes_per_s: float,
    ) -> None:
        super().__init__(jobs, nodes, scheduler, options)
        self.uplink_bytes_per_s = uplink_bytes_per_s

    def decide(self) -> None:
        super().decide()
        works: list[LinkedWork] = []
        crossings: list[Crossing] = []
        for job in self._active:
            if not job.placement or job.footprint is None:
                continue
            if job.footprint.tier is LinkTier.SPINE and isinstance(job.work, LinkedWork):
                racks = frozenset(self.nodes[node].rack for node, _ in job.placement)
                works.append(job.work)
                crossings.append(Crossing(job.work.steps, job.footprint.gpus, racks))
        for work, share in zip(works, shares_of(crossings, self.uplink_bytes_per_s), strict=True):
            work.spine_bytes_per_s = share

    def communicating_gpu_s(self) -> float:
        """Return the GPU time of steps beyond their computation, so far."""
        return sum(
            job.gpus * job.work.communicating_s
            for job in self.jobs
            if isinstance(job.work, LinkedWork)
        )
