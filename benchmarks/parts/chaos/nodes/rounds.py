"""Rounds of faults on several nodes at once, planned from a seed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.nodes.account import Outage, OutageAccount
from benchmarks.parts.chaos.nodes.injected import (
    AGENT_FAULTS,
    CUTS,
    NODE_FAULTS,
    SERVICE_FAULTS,
    STEP_FAULTS,
    Injected,
    make,
)
from benchmarks.parts.chaos.nodes.node import RealNode
from benchmarks.parts.chaos.nodes.site import ChaosSite
from benchmarks.parts.chaos.nodes.ticks import boot_ms

CONTROL = -1
"""The lane of faults of services."""
RECOVERED_S = 180.0
SHARE_OF_PAIRS, SHARE_OF_LONG = 0.3, 0.2
LASTING = (*AGENT_FAULTS, *CUTS, *(kind for kind in SERVICE_FAULTS if kind.endswith("paused")))
"""Faults that go on until they are healed."""
GAP_S = 0.5
"""Longest time between two faults of a round, and between their healings."""
SHORTEST_S = 0.3
SHORT_SHARE = 0.2
"""Longest hold of a short fault, as a share of `stop_after_s`."""


@dataclass(frozen=True, slots=True)
class FaultRound:
    """One or two faults of a lane: a node, by its number, or the services."""

    number: int
    lane: int
    kinds: tuple[str, ...]
    hold_s: float
    is_long: bool

    def __str__(self) -> str:
        place = "services" if self.lane == CONTROL else f"node {self.lane + 1}"
        return f"round {self.number}: {' and '.join(self.kinds)} of {place}, {self.hold_s:.1f} s"


def plan_rounds(
    seed: int, count: int, nodes: int, terms: dict[str, Any], *, is_durable: bool = True
) -> list[FaultRound]:
    """Return the rounds of a seed; a long one outlasts the lease of its node.

    Without `is_durable` the broker, which keeps its data in memory, is not killed.
    """
    services = [kind for kind in SERVICE_FAULTS if is_durable or kind != "broker killed"]
    draw = random.Random(seed)
    rounds = []
    for number in range(1, count + 1):
        lane = draw.randrange(CONTROL, nodes)
        kinds = _kinds(draw, services if lane == CONTROL else NODE_FAULTS)
        can_last = any(kind in LASTING for kind in kinds)
        is_long = draw.random() < SHARE_OF_LONG and can_last
        hold_s = draw.uniform(SHORTEST_S, SHORT_SHARE * terms["stop_after_s"])
        if is_long:
            hold_s += terms["stop_after_s"] + terms["kill_s"]
        rounds.append(FaultRound(number, lane, kinds, hold_s, is_long))
    return rounds


def _kinds(draw: random.Random, available: Sequence[str]) -> tuple[str, ...]:
    first = draw.choice(available)
    if draw.random() >= SHARE_OF_PAIRS:
        return (first,)
    others = [kind for kind in available if _group(kind) != _group(first)]
    return first, draw.choice(others)


def _group(kind: str) -> str:
    """Return what a kind acts on: two faults of a round act on different things."""
    for name, kinds in (("agent", AGENT_FAULTS), ("step", STEP_FAULTS), ("link", CUTS)):
        if kind in kinds:
            return name
    return kind.split()[0]


@dataclass(slots=True)
class Patience:
    """The longest time of a recovery: a node cannot recover while services are away."""

    service_changes: int = 0
    """Begins and ends of rounds of the services so far; odd while such a round goes on."""

    async def is_over(self, lane: int, is_over: Callable[[], bool]) -> bool:
        """Return whether a fault was over in time; the time of a node begins anew with services."""
        while True:
            seen = self.service_changes
            if await faults.wait_until(is_over, RECOVERED_S) is not None:
                return True
            were_present = seen == self.service_changes and seen % 2 == 0
            if lane == CONTROL or were_present:
                return False


@dataclass(slots=True)
class FaultRounds:
    """Runs the rounds: those of one lane one after the other, lanes at the same time."""

    site: ChaosSite
    account: OutageAccount
    seed: int
    patience: Patience = field(default_factory=Patience)

    async def run(self, rounds: list[FaultRound]) -> None:
        async with asyncio.TaskGroup() as group:
            for lane in range(CONTROL, len(self.site.nodes)):
                own = iter([planned for planned in rounds if planned.lane == lane])
                group.create_task(self._run_lane(own))

    async def _run_lane(self, rounds: Iterator[FaultRound]) -> None:
        for planned in rounds:
            if planned.lane == CONTROL:
                self.patience.service_changes += 1
                await self._run(planned, None)
                self.patience.service_changes += 1
                continue
            node = self.site.nodes[planned.lane]
            self.site.faulty.add(node.node_id)
            try:
                await self._run(planned, node)
            finally:
                self.site.faulty.discard(node.node_id)

    async def _run(self, planned: FaultRound, node: RealNode | None) -> None:
        draw = random.Random(f"{self.seed}-{planned.number}")
        injected = [await make(kind, self.site, node, draw) for kind in planned.kinds]
        begun_at = time.time()
        for fault in injected:
            if fault.target:
                self.account.targets.add(fault.target)
            await fault.inject()
            await asyncio.sleep(draw.uniform(0.0, GAP_S))
        await asyncio.sleep(planned.hold_s)
        draw.shuffle(injected)
        healed = []
        for fault in injected:
            await fault.heal()
            healed.append(boot_ms())
        await self._recover(planned, injected, healed, begun_at)

    async def _recover(
        self, planned: FaultRound, injected: list[Injected], healed: list[int], begun_at: float
    ) -> None:
        """Wait for the fact that each fault is over, and note the outages."""
        began = time.monotonic()
        for fault, healed_ms in zip(injected, healed, strict=True):
            if not await self.patience.is_over(planned.lane, partial(fault.is_over, healed_ms)):
                self.account.not_recovered.append(f"{planned}: {fault.kind}")
            times = self.account.recovery_s.setdefault(fault.kind, [])
            times.append(time.monotonic() - began)
            if fault.node is not None:
                self.account.outages.append(
                    Outage(fault.node, begun_at, time.time(), planned.is_long)
                )
        self.site.load.report_line(f"{planned}: over after {time.monotonic() - began:.1f} s")
