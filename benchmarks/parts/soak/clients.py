"""Clients of a soak beside its jobs: LLM requests of two tenants, and a reader of the stream."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from benchmarks.parts.stack import POOL, TENANT, Bench
from cli.demo.engines import client_keys, configure_endpoint, start_engines
from cli.demo.llm_clients import ABUSIVE, POLITE, LlmClients, trust
from cli.stack.access_producer import send_to_access
from shared.contracts.access import RegisterTenant

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
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60.0)
        last_id = ""
        async with aiohttp.ClientSession(
            self.url, timeout=timeout, connector=aiohttp.TCPConnector(ssl=trust(self.ca))
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

    async def run(self) -> None:
        """Send requests and read the stream until cancelled. Raises what one of them raises."""
        await asyncio.gather(self.llm.run(), self.stream.run())

    def figures(self) -> dict[str, Any]:
        return {
            "llm_answered": dict(self.llm.answered),
            "llm_failures": len(self.llm.failures),
            "first_llm_failures": self.llm.failures[:FIRST_FAILURES],
            "stream_events": self.stream.events,
            "stream_ends": dict(self.stream.ends),
        }


async def prepare_clients(bench: Bench, ports: Sequence[int]) -> SoakClients:
    """Start the engines, configure their endpoint, and make keys for this slice."""
    stack = bench.stack
    await asyncio.to_thread(start_engines, stack.data_dir)
    keys, create_keys = client_keys((TENANT, ABUSER))
    commands = [
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
