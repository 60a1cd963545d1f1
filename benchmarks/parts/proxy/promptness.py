"""Times until an engine is free once a client has left, and until a revoked key is refused."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable

import aiohttp

from benchmarks.parts.percentiles import percentile
from benchmarks.parts.proxy.load import PATH
from benchmarks.parts.proxy.site import (
    SECRET,
    TENANT,
    ProxySite,
    body,
    proxy_site,
    session,
    settings_of,
    until_served,
)
from shared.contracts.access import CreateKey, RevokeKey
from shared.process.progress import ReportLine

SPEED = 1.0
"""Of the engine: an answer of `TOKENS` takes far longer than any client waits here."""
TOKENS = 2_000
LEFT, REVOKED = 20, 5
"""Clients that leave, and keys that are revoked, one after the other."""
LOOK_S = 0.002
WAIT_S = 30.0
RUNNING = re.compile(r"^vllm:num_requests_running\S*\s+([0-9.]+)", re.MULTILINE)

Figures = dict[str, float]


async def promptness(is_durable: bool, report_line: ReportLine) -> dict[str, Figures]:
    """Return the median and the most of each, ms; `left` includes the looks at the engine."""
    report_line("clients that leave, and keys that are revoked")
    async with proxy_site(is_durable=is_durable, speed=SPEED) as site:
        await site.configure(*settings_of(site))
        throttle = site.start_throttle()
        try:
            await until_served(site.url)
            left = [await _leave(site) for _ in range(LEFT)]
            return {"left": _figures(left), "revoked": _figures(await _revoke_often(site))}
        finally:
            throttle.stop()


def _figures(times_s: list[float]) -> Figures:
    return {
        "times": len(times_s),
        "p50_ms": round(1000 * percentile(times_s, 0.5), 1),
        "most_ms": round(1000 * max(times_s), 1),
    }


async def _leave(site: ProxySite) -> float:
    """Leave a stream after its first bytes; return the seconds until the engine runs nothing."""
    async with aiohttp.ClientSession() as looking:

        async def is_free() -> bool:
            return await _running(looking, site.engine_url) == 0

        async with session(site.url) as client:
            response = await client.post(PATH, json=body(TOKENS, stream=True))
            await response.content.readany()
            left_s = time.perf_counter()
            response.close()
            return await _until(is_free) - left_s


async def _running(client: aiohttp.ClientSession, engine_url: str) -> float:
    async with client.get(f"{engine_url}/metrics") as answer:
        match = RUNNING.search(await answer.text())
    assert match is not None, "the engine reports no running requests"
    return float(match[1])


async def _revoke_often(site: ProxySite) -> list[float]:
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    times_s = []
    for number in range(REVOKED):
        name = f"revoked-{number}"
        await site.configure(CreateKey(key_id=name, sha256=digest, role="submitter", tenant=TENANT))
        async with session(site.url, f"{name}.{SECRET}") as client:

            async def is_refused(client: aiohttp.ClientSession = client) -> bool:
                async with client.get("/v1/models") as answer:
                    return answer.status == 401

            async def is_known(client: aiohttp.ClientSession = client) -> bool:
                async with client.get("/v1/models") as answer:
                    return answer.status == 200

            await _until(is_known)
            sent_s = time.perf_counter()
            await site.configure(RevokeKey(key_id=name))
            times_s.append(await _until(is_refused) - sent_s)
    return times_s


async def _until(holds: Callable[[], Awaitable[bool]]) -> float:
    """Return the time at which it holds. Raises TimeoutError."""
    async with asyncio.timeout(WAIT_S):
        while not await holds():
            await asyncio.sleep(LOOK_S)
    return time.perf_counter()
