"""SIGKILL of services, one or several at once, until each works again."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.chaos.result_file import ResultFile
from benchmarks.parts.command import Json
from benchmarks.parts.percentiles import summarize
from infra.supervisor import supervise
from infra.supervisor.stack import SERVICES

RECOVERY_LIMIT_S = 60.0
DECIDERS = ("admission", "priority", "placement")
"""Services that have recovered once their ledger has a new record. The others have recovered once
they are healthy and, for the executor, placement has received a message of it."""


@dataclass(slots=True)
class KillTally:
    """The kills so far, and the recovery time of each."""

    per_service: int
    """Kills of each service."""
    killers: int
    began: float = field(default_factory=time.monotonic)
    recovery_s: dict[str, list[float]] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    """Kills without recovery within `RECOVERY_LIMIT_S`."""

    def add(self, name: str, seconds: float) -> None:
        self.recovery_s.setdefault(name, []).append(seconds)
        self.late[name] += seconds >= RECOVERY_LIMIT_S

    @property
    def kills(self) -> int:
        return sum(len(times) for times in self.recovery_s.values())

    def figures(self) -> Json:
        all_s = [seconds for times in self.recovery_s.values() for seconds in times]
        deciders_s = [s for name in DECIDERS for s in self.recovery_s.get(name, [])]
        return {
            "kills": self.kills,
            "wanted_per_service": self.per_service,
            "fewest_per_service": min(
                (len(self.recovery_s.get(service.name, [])) for service in SERVICES), default=0
            ),
            "at_once": self.killers,
            "wall_s": round(time.monotonic() - self.began),
            "recovery_s": summarize(all_s),
            "deciders_recovery_s": summarize(deciders_s),
            "by_service_s": {
                name: summarize(times) for name, times in sorted(self.recovery_s.items())
            },
            "not_seen_again_in_time": sum(self.late.values()),
        }


async def kills(options: ChaosOptions, loaded: LoadedStack, results: ResultFile) -> Json:
    """Kill each service `kills` times in a random order, then run the load on to `jobs` jobs."""
    tally = KillTally(options.kills, options.killers)
    ends_s = time.monotonic() + options.minutes * 60

    def figures() -> Json:
        return tally.figures() | {"jobs": len(loaded.acked), "wanted_jobs": options.jobs}

    def progress() -> str:
        results.store_part("kills", figures())
        return f", {tally.kills} of {options.kills * len(SERVICES)} kills"

    loaded.progress = progress
    try:
        await kill_all(loaded, tally, options.seed, ends_s)
        result = figures()
        while len(loaded.acked) < options.jobs and time.monotonic() < ends_s:
            await asyncio.sleep(0.5)
    finally:
        loaded.progress = str
    return result | {"jobs": len(loaded.acked)}


async def recovery(options: ChaosOptions, loaded: LoadedStack, results: ResultFile) -> Json:
    """Kill one service at a time under the ordinary load, and measure the recovery."""
    tally = KillTally(options.alone, 1)

    def progress() -> str:
        results.store_part("recovery", tally.figures())
        return f", {tally.kills} of {options.alone * len(SERVICES)} kills"

    loaded.progress = progress
    try:
        await kill_all(loaded, tally, options.seed, time.monotonic() + options.minutes * 60)
    finally:
        loaded.progress = str
    return tally.figures()


async def kill_all(loaded: LoadedStack, tally: KillTally, seed: int, ends_s: float) -> None:
    """Kill every service `tally.per_service` times in a random order, by `tally.killers` tasks.

    No kill begins after `ends_s` (monotonic), and none before its service has recovered.
    """
    draw = random.Random(seed)
    order = [service.name for service in SERVICES] * tally.per_service
    draw.shuffle(order)
    remaining = iter(order)
    locks = {service.name: asyncio.Lock() for service in SERVICES}
    pauses = random.Random(seed + 1)
    async with asyncio.TaskGroup() as group:
        for _ in range(tally.killers):
            group.create_task(_killer(loaded, tally, remaining, locks, pauses, ends_s))


async def _killer(
    loaded: LoadedStack,
    tally: KillTally,
    remaining: Iterator[str],
    locks: dict[str, asyncio.Lock],
    pauses: random.Random,
    ends_s: float,
) -> None:
    for name in remaining:
        async with locks[name]:
            if time.monotonic() > ends_s:
                return
            tally.add(name, await kill(loaded, name))
        await asyncio.sleep(pauses.uniform(0.2, 1.0))


async def kill(loaded: LoadedStack, name: str) -> float:
    """Return wall seconds from the signal to recovery; at least `RECOVERY_LIMIT_S` without one."""
    stack = loaded.bench.stack
    await faults.pid_of(stack.data_dir, name)
    since = time.time()
    await faults.send_signal(stack.data_dir, name, signal.SIGKILL)
    if name in DECIDERS:
        return await loaded.wait_for_decision(name, since, RECOVERY_LIMIT_S)
    port = stack.ports[name]["metrics"]
    await asyncio.sleep(0.3)
    if name == "executor-virtual":
        await faults.wait_until(lambda: loaded.executor_event_at > since + 0.3, RECOVERY_LIMIT_S)
    await faults.wait_until(lambda: supervise.is_ready(port), RECOVERY_LIMIT_S)
    return time.time() - since
