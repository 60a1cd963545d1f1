"""Requests of a closed loop, so many at once, and how long each took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

PATH = "/v1/chat/completions"


@dataclass(slots=True)
class Phase:
    """The answers of one loop."""

    wall_s: float = 0.0
    latencies_s: list[float] = field(default_factory=list)
    failed: int = 0

    @property
    def requests(self) -> int:
        return len(self.latencies_s)

    @property
    def rps(self) -> float:
        return self.requests / self.wall_s if self.wall_s else 0.0


async def run_phase(
    client: aiohttp.ClientSession, body: Mapping[str, object], concurrency: int, duration_s: float
) -> Phase:
    """Run for about so long; requests that are open then still count."""
    phase, began_s = Phase(), time.perf_counter()

    async def repeat() -> None:
        while time.perf_counter() - began_s < duration_s:
            await one_request(client, body, phase)

    await asyncio.gather(*(repeat() for _ in range(concurrency)))
    phase.wall_s = time.perf_counter() - began_s
    return phase


async def one_request(
    client: aiohttp.ClientSession, body: Mapping[str, object], phase: Phase
) -> None:
    began_s = time.perf_counter()
    try:
        async with client.post(PATH, json=body) as answer:
            async for _ in answer.content.iter_any():
                pass
            is_served = answer.status == 200
    except aiohttp.ClientError:
        is_served = False
    if is_served:
        phase.latencies_s.append(time.perf_counter() - began_s)
    else:
        phase.failed += 1
        await asyncio.sleep(0.01)
