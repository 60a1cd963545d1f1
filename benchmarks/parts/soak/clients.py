"""Clients of a soak beside its jobs: LLM requests of two tenants, and a reader of the stream."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from benchmarks.parts.stack import POOL, TENANT, Bench
from cli.demo.engines import ENGINES, client_keys, configure_endpoint, engine_name
from cli.demo.llm_clients import ABUSIVE, POLITE, LlmClients
from cli.stack.access_producer import send_to_access
from infra.supervisor import control
from shared.contracts.access import RegisterTenant
from shared.contracts.pools import ConfigurePool

ABUSER = "soak-abuser"
RECONNECT_S = 1.0
FIRST_FAILURES = 3


@dataclass(slots=True)
class StreamReader:
    """Follows `GET /v1/events` as a tenant, and reconnects behind the last event."""

    url: str
    ca: str
    key: str
    events: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    """How connections ended, by cause."""

    async def run(self) -> None:
        tls = ssl.create_default_context(cafile=self.ca) if self.ca else True
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60.0)
        last_id = ""
        async with aiohttp.ClientSession(
            self.url, timeout=timeout, connector=aiohttp.TCPConnector(ssl=tls)
        ) as session:
            while True:
                headers = {"authorization": f"Bearer {self.key}", "last-event-id": last_id}
                try:
                    async with session.get("/v1/events", headers=headers) as response:
                        response.raise_for_status()
                        async for line in response.content:
                            self.events += line.startswith(b"data:")
                            if line.startswith(b"id:"):
                                last_id = line[3:].strip().decode()
                    self.ends["closed"] += 1
                except (aiohttp.ClientError, TimeoutError) as error:
                    self.ends[type(error).__name__] += 1
                await asyncio.sleep(RECONNECT_S)


@dataclass(slots=True)
class SoakClients:
    """The clients that run beside the jobs of one slice."""

    llm: LlmClients
    stream: StreamReader

    def figures(self) -> dict[str, Any]:
        return {
            "llm_answered": dict(self.llm.answered),
            "llm_failures": len(self.llm.failures),
            "first_llm_failures": self.llm.failures[:FIRST_FAILURES],
            "stream_events": self.stream.events,
            "stream_ends": dict(self.stream.ends),
        }


async def prepare_clients(bench: Bench, ports: Sequence[int]) -> SoakClients:
    """Start the engines, configure their endpoint and the pool, and make keys for this slice."""
    stack = bench.stack
    for number in range(1, ENGINES + 1):
        await asyncio.to_thread(control.start, stack.data_dir, engine_name(number))
    keys, create_keys = client_keys((TENANT, ABUSER))
    commands = [
        ConfigurePool(pool=POOL, base_policy="fair_share", allow_injection=True),
        RegisterTenant(tenant=ABUSER, default_pool=POOL),
        configure_endpoint(ports),
        *create_keys,
    ]
    await send_to_access(stack.connection("operator"), commands)
    ca = str(stack.ca or "")
    return SoakClients(
        LlmClients(stack.llm, ca, keys, {TENANT: POLITE, ABUSER: ABUSIVE}),
        StreamReader(stack.gateway, ca, keys[TENANT]),
    )


@asynccontextmanager
async def running_clients(clients: SoakClients) -> AsyncIterator[None]:
    """Run the clients until the block ends; an error of one is raised there."""
    tasks = [asyncio.ensure_future(one.run()) for one in (clients.llm, clients.stream)]
    try:
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
