"""Two tenants that always have requests waiting, and what an engine has served each."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import aiohttp

from benchmarks.parts.proxy.load import PATH
from benchmarks.parts.proxy.site import MODEL

OPEN_REQUESTS = {"many": 24, "few": 8}
"""Requests that each tenant has open at any time; both have more than the engine has slots."""
OUTPUT_WEIGHT = 2
"""Units of service of an output token; a prompt token is one."""
PROMPT_WORDS = (10, 120)
MEDIAN_LN, SPREAD, LEAST_TOKENS, MOST_TOKENS = 5.0, 0.6, 20, 600
"""Of the limits of the answers: log-normal, 148 tokens in the median."""
TOKEN = b'"delta":{"content":"'
"""Occurs once in each chunk with a token of this engine."""
WORDS = [
    "time",
    "river",
    "stone",
    "light",
    "paper",
    "engine",
    "green",
    "table",
    "window",
    "north",
    "sugar",
    "little",
]


@dataclass(slots=True)
class ServicePhase:
    """The service that the engine gave each tenant while both always had requests waiting."""

    began_s: float = field(default_factory=time.perf_counter)
    service: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OPEN_REQUESTS, 0))
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OPEN_REQUESTS, 0))
    max_gap: int = 0
    wall_s: float = 0.0
    failed: int = 0

    def add(self, tenant: str, units: int, tokens: int) -> None:
        """Count service that arrived, unless the phase has ended."""
        if self.wall_s:
            return
        self.service[tenant] += units
        self.tokens[tenant] += tokens
        many, few = self.service.values()
        self.max_gap = max(self.max_gap, abs(many - few))

    def end(self) -> None:
        self.wall_s = time.perf_counter() - self.began_s


async def run_phase(
    clients: Mapping[str, aiohttp.ClientSession], label: str, duration_s: float, seed: int
) -> ServicePhase:
    """Keep the requests open for the duration, then cancel those that are left."""
    phase = ServicePhase()
    async with asyncio.TaskGroup() as tasks:
        loops = [
            tasks.create_task(_send_requests(clients[tenant], tenant, label, phase, f"{seed}-{n}"))
            for tenant, requests in OPEN_REQUESTS.items()
            for n in range(requests)
        ]
        await asyncio.sleep(duration_s)
        phase.end()
        for loop in loops:
            loop.cancel()
    return phase


async def _send_requests(
    client: aiohttp.ClientSession, tenant: str, label: str, phase: ServicePhase, seed: str
) -> None:
    draw = random.Random(f"{tenant}-{seed}")
    while True:
        words = draw.choices(WORDS, k=draw.randint(*PROMPT_WORDS))
        limit = int(draw.lognormvariate(MEDIAN_LN, SPREAD))
        body = {
            "model": MODEL,
            "messages": [{"role": "user", "content": " ".join(words)}],
            "max_tokens": min(max(limit, LEAST_TOKENS), MOST_TOKENS),
            "stream": True,
            "user": label,
        }
        if not await _send(client, body, tenant, len(words), phase):
            phase.failed += 1
            await asyncio.sleep(0.1)


async def _send(
    client: aiohttp.ClientSession,
    body: Mapping[str, object],
    tenant: str,
    prompt_tokens: int,
    phase: ServicePhase,
) -> bool:
    """Send one request and count what arrives; return whether it was served to its end."""
    try:
        async with client.post(PATH, json=body) as answer:
            if answer.status != 200:
                return False
            units = prompt_tokens
            async for tokens in _token_counts(answer):
                phase.add(tenant, units + OUTPUT_WEIGHT * tokens, tokens)
                units = 0
        return True
    except aiohttp.ClientError:
        return False


async def _token_counts(answer: aiohttp.ClientResponse) -> AsyncIterator[int]:
    """Yield the tokens of each piece that arrives; `TOKEN` may lie across two of them."""
    rest = b""
    async for piece in answer.content.iter_any():
        data = rest + piece
        tokens = data.count(TOKEN)
        rest = data[-(len(TOKEN) - 1) :]
        if tokens:
            yield tokens
