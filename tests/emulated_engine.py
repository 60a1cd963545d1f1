"""The metrics of an emulated engine on the loopback, which tests wait for."""

from __future__ import annotations

import asyncio

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from tests.patience import PATIENCE_S


class EmulatedEngine:
    """An emulated engine and its metrics."""

    def __init__(self, port: int, session: aiohttp.ClientSession) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.session = session

    async def metric(self, name: str, **labels: str) -> float:
        async with self.session.get(f"{self.url}/metrics") as response:
            text = await response.text()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"vllm:{name}" and labels.items() <= sample.labels.items()
        )

    async def until(self, name: str, value: float, **labels: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while await self.metric(name, **labels) != value:
                await asyncio.sleep(0.01)

    async def ended(self) -> float:
        return await self.metric("request_success_total")
