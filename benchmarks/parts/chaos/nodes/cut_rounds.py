"""Rounds in which the network cuts nodes off, each direction or both, planned from a seed."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.nodes.account import Outage, OutageAccount
from benchmarks.parts.chaos.nodes.node import RealNode
from benchmarks.parts.chaos.nodes.site import ChaosSite
from benchmarks.parts.chaos.nodes.ticks import GpuUse, boot_ms
from infra.drills.hosts import Direction, Network

Cut = Literal[Direction, "both"]
"""Loss of one direction of the node's link, or of both, without an error at the sender."""

CUTS: tuple[Cut, ...] = ("from_host", "to_host", "both")
SHARES = (0.5, 0.9, 1.1, 2.0)
"""Lengths of the cuts, as shares of `stop_after_s`."""
STEP_WITHIN_S, RECOVERED_S = 180.0, 180.0
UNDER_WAY_S = 1.0
"""After so long no answer is under way that was sent before the cut."""
PHASE_S = 1.0
"""Longest wait before a cut, so that it begins at any moment between two heartbeats."""


@dataclass(frozen=True, slots=True)
class CutRound:
    """A cut of some node: the first one that is free."""

    number: int
    cut: Cut
    share: float
    phase_s: float

    @property
    def is_beyond_lease(self) -> bool:
        return self.share >= 1.0

    @property
    def kind(self) -> str:
        return f"{self.cut} {self.share:g}"

    def __str__(self) -> str:
        return f"round {self.number}: {self.cut} for {self.share:g} x stop_after_s"


def plan_cuts(seed: int, count: int) -> list[CutRound]:
    """Return the rounds of a seed: all cuts of all lengths in random order, again and again."""
    draw = random.Random(seed)
    kinds: list[tuple[Cut, float]] = []
    while len(kinds) < count:
        more = list(product(CUTS, SHARES))
        draw.shuffle(more)
        kinds += more
    return [
        CutRound(number, cut, share, draw.uniform(0.0, PHASE_S))
        for number, (cut, share) in enumerate(kinds[:count], start=1)
    ]


@dataclass(frozen=True, slots=True)
class CutOff:
    """Effect of a round on its node; boot ms."""

    planned: CutRound
    node_id: str
    sent_ms: int
    """When the last heartbeat was sent that was acknowledged."""
    deadline_ms: int
    """The deadline that follows from it."""
    is_fenced: bool
    """Whether the node has begun a new incarnation."""
    recovery_s: float
    load_1m: float

    def margin_s(self, uses: Sequence[GpuUse]) -> float | None:
        """Return how long before the deadline its last worker ticked for the last time.

        Less than 0: after it. None: no worker ran when the deadline was handed out, or later.
        """
        last_ms = [
            use.last_ms
            for use in uses
            if use.node == self.node_id
            and use.first_ms < self.deadline_ms
            and use.last_ms >= self.sent_ms
        ]
        return (self.deadline_ms - max(last_ms)) / 1000 if last_ms else None


@dataclass(slots=True)
class CutRounds:
    """Runs the rounds, on all nodes at the same time; one node has one cut at a time."""

    site: ChaosSite
    network: Network
    account: OutageAccount
    stop_after_s: float
    done: list[CutOff] = field(default_factory=list)

    async def run(self, planned: list[CutRound]) -> None:
        waiting = iter(planned)
        async with asyncio.TaskGroup() as group:
            for node in self.site.nodes:
                group.create_task(self._run_node(node, waiting))

    async def _run_node(self, node: RealNode, waiting: Iterator[CutRound]) -> None:
        for planned in waiting:
            await faults.wait_until(lambda: bool(node.steps()), STEP_WITHIN_S)
            await asyncio.sleep(planned.phase_s)
            await self._run(planned, node)

    async def _run(self, planned: CutRound, node: RealNode) -> None:
        """Cut the node off, and wait for the fact that it was heard again."""
        assert node.host is not None
        name, cut = node.host.name, planned.cut
        before = node.lease().get("incarnation")
        await asyncio.to_thread(begin, self.network, name, cut)
        try:
            await asyncio.sleep(UNDER_WAY_S)
            sent_ms = int(node.lease().get("sent_boot_ms", boot_ms()))
            unrenewed_at = time.time() - (boot_ms() - sent_ms) / 1000
            await asyncio.sleep(planned.share * self.stop_after_s - UNDER_WAY_S)
        finally:
            healed_ms = boot_ms()
            await asyncio.to_thread(end, self.network, name, cut)
        recovery_s = await faults.wait_until(lambda: node.is_renewed_since(healed_ms), RECOVERED_S)
        if recovery_s is None:
            self.account.not_recovered.append(str(planned))
        is_long = planned.share * self.stop_after_s >= self.account.least_s
        self.account.outages.append(Outage(node.node_id, unrenewed_at, time.time(), is_long))
        deadline_ms = sent_ms + round(1000 * self.stop_after_s)
        is_fenced = node.lease().get("incarnation") != before
        took_s = RECOVERED_S if recovery_s is None else recovery_s
        load_1m = os.getloadavg()[0]
        self.done.append(
            CutOff(planned, node.node_id, sent_ms, deadline_ms, is_fenced, took_s, load_1m)
        )
        self.site.load.report_line(
            f"{planned}: {node.node_id} is heard after {took_s:.1f} s"
            f"{' as a new incarnation' if is_fenced else ''}"
        )


def directions_of(cut: Cut) -> tuple[Direction, ...]:
    return ("from_host", "to_host") if cut == "both" else (cut,)


def begin(network: Network, name: str, cut: Cut) -> None:
    for direction in directions_of(cut):
        network.lose(name, direction)


def end(network: Network, name: str, cut: Cut) -> None:
    for direction in directions_of(cut):
        network.lose_no_more(name, direction)
