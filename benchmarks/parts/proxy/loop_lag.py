"""Measures the longest pause of the throttle's event loop while the largest bodies come."""

from __future__ import annotations

import asyncio
import base64

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.parts.proxy.site import (
    MODEL,
    ProxySite,
    proxy_site,
    session,
    settings_of,
    until_served,
)
from infra.machine.process import free_ports
from shared.process.progress import ReportLine

BODY_BYTES = 15 * 2**20
"""Of an image in the request, a little below the limit of a body."""
SMALL_BYTES = 1_024
CLIENTS, BODIES, SMALL_BODIES = 4, 160, 2_000
"""So many that the latest look of all is not the 99th percentile: some 250 looks."""
STALL = "berth_event_loop_stall_seconds"
Buckets = dict[float, float]
"""Number of looks at the loop by upper bound of its lag, s, cumulative."""


async def loop_lag(is_durable: bool, report_line: ReportLine) -> dict[str, dict[str, float]]:
    """Return the lag of the loop, ms, under the largest bodies and under small ones.

    It is by quantile, as upper bounds of the metric's buckets. On a machine that has more to do
    than its cores can, small bodies say how much of it is the machine's.
    """
    report_line("the largest bodies")
    async with proxy_site(is_durable=is_durable) as site:
        await site.configure(*settings_of(site))
        (port,) = free_ports(1)
        variables = {"BERTH_PORT": str(site.port), "BERTH_METRICS_PORT": str(port)}
        throttle = site.start("throttle", **variables)
        try:
            await until_served(site.url)
            largest = await _lag_under(site, port, BODY_BYTES, BODIES)
            return {
                "largest": largest,
                "small": await _lag_under(site, port, SMALL_BYTES, SMALL_BODIES),
            }
        finally:
            throttle.stop()


async def _lag_under(site: ProxySite, port: int, size_bytes: int, bodies: int) -> dict[str, float]:
    before = await _stalls(port)
    statuses = await _send_bodies(site, size_bytes, bodies)
    await asyncio.sleep(1.0)
    lags = {bound: looks - before[bound] for bound, looks in (await _stalls(port)).items()}
    served = sum(status == 200 for status in statuses)
    return {"bodies": bodies, "served": served, **quantiles_ms(lags)}


def quantiles_ms(lags: Buckets) -> dict[str, float]:
    """Return the bounds that half, 99 % and all of the looks did not pass."""
    looks = max(lags.values(), default=0.0)
    parts = {"p50_ms": 0.5, "p99_ms": 0.99, "most_ms": 1.0}
    bounds = sorted(lags)
    return {
        "looks": looks,
        **{
            name: 1000 * next((bound for bound in bounds if lags[bound] >= part * looks), 0.0)
            for name, part in parts.items()
        },
    }


async def _send_bodies(site: ProxySite, size_bytes: int, bodies: int) -> list[int]:
    image = base64.b64encode(bytes(size_bytes * 3 // 4)).decode()
    text = {"type": "text", "text": "What is this?"}
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}
    body = {"model": MODEL, "max_tokens": 4, "messages": [{"role": "user", "content": [text, url]}]}
    async with session(site.url) as client:
        clients = (_send(client, body, bodies // CLIENTS) for _ in range(CLIENTS))
        return [status for some in await asyncio.gather(*clients) for status in some]


async def _send(client: aiohttp.ClientSession, body: object, times: int) -> list[int]:
    statuses = []
    for _ in range(times):
        async with client.post("/v1/chat/completions", json=body) as answer:
            await answer.read()
            statuses.append(answer.status)
    return statuses


async def _stalls(port: int) -> Buckets:
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        text = await answer.text()
    return {
        float(sample.labels["le"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == f"{STALL}_bucket"
    }
