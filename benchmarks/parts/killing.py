"""SIGKILL of services, one after the other or several at once, until each works again."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.parts import faults
from benchmarks.parts.load import percentile
from benchmarks.parts.scene import Scene
from infra.supervisor import supervise
from infra.supervisor.stack import SERVICES

Json = dict[str, object]

NEXT_S = 60.0
DECIDERS = ("admission", "priority", "placement")
"""Those whose next decision is seen in their ledgers; of the others, that they are healthy and,
of the executor, that placement hears of it again."""


@dataclass(slots=True)
class Toll:
    """What was killed so far, and how long each took until its next sign of work."""

    wanted: int
    """Kills of each service."""
    killers: int
    began: float = field(default_factory=time.monotonic)
    took: dict[str, list[float]] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    """Kills after which nothing was seen within `NEXT_S`."""

    def note(self, name: str, seconds: float) -> None:
        self.took.setdefault(name, []).append(seconds)
        self.late[name] += seconds >= NEXT_S

    @property
    def kills(self) -> int:
        return sum(len(each) for each in self.took.values())

    def figures(self) -> Json:
        times = [s for each in self.took.values() for s in each]
        deciders = [s for name in DECIDERS for s in self.took.get(name, [])]
        return {
            "kills": self.kills,
            "wanted_per_service": self.wanted,
            "fewest_per_service": min(
                (len(self.took.get(each.name, [])) for each in SERVICES), default=0
            ),
            "at_once": self.killers,
            "wall_s": round(time.monotonic() - self.began),
            "recovery_s": spread(times),
            "deciders_recovery_s": spread(deciders),
            "by_service_s": {name: spread(each) for name, each in sorted(self.took.items())},
            "not_seen_again_in_time": sum(self.late.values()),
        }


def spread(times: list[float]) -> Json:
    """Seconds."""
    return {
        "count": len(times),
        "p50": round(percentile(times, 0.5), 2),
        "p99": round(percentile(times, 0.99), 2),
        "max": round(max(times, default=0.0), 2),
    }


async def kill_all(made: Scene, toll: Toll, seed: int, ends: float) -> None:
    """Every service so often, in a random order, by so many killers; none after `ends`
    (monotonic). No service is killed before it is seen to work again."""
    chance = random.Random(seed)
    order = [service.name for service in SERVICES] * toll.wanted
    chance.shuffle(order)
    todo = iter(order)
    turns = {service.name: asyncio.Lock() for service in SERVICES}
    pauses = random.Random(seed + 1)
    async with asyncio.TaskGroup() as group:
        for _ in range(toll.killers):
            group.create_task(_killer(made, toll, todo, turns, pauses, ends))


async def _killer(
    made: Scene,
    toll: Toll,
    todo: Iterator[str],
    turns: dict[str, asyncio.Lock],
    pauses: random.Random,
    ends: float,
) -> None:
    for name in todo:
        async with turns[name]:
            if time.monotonic() > ends:
                return
            toll.note(name, await killed(made, name))
        await asyncio.sleep(pauses.uniform(0.2, 1.0))


async def killed(made: Scene, name: str) -> float:
    """Wall seconds from the signal to the next sign of work; `NEXT_S` when there was none."""
    await faults.pid_of(made.bench.stack.data_dir, name)
    since = time.time()
    await faults.signal_to(made.bench.stack.data_dir, name, signal.SIGKILL)
    if name in DECIDERS:
        return await made.decides_after(name, since, NEXT_S)
    port = made.bench.stack.ports[name]["metrics"]
    await asyncio.sleep(0.3)
    if name == "executor-virtual":
        await faults.until(lambda: made.heard_executor > since + 0.3, NEXT_S)
    await faults.until(lambda: supervise.is_ready(port), NEXT_S)
    return time.time() - since
