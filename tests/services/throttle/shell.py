"""The throttle's shell on loopback, over the in-memory twin."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from services.throttle.app import ThrottleShell, requests_only
from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from services.throttle.settings import ThrottleSettings
from shared.bus.lane import Lane, LaneSettings
from shared.bus.memory import MemoryBroker, MemoryLog
from shared.contracts.access import EndpointConfigured, KeyCreated, TenantRegistered
from shared.contracts.base import Event
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics
from shared.telemetry.setup import Telemetry
from shared.telemetry.spans import Spans
from shared.testing.ledger import accepted
from shared.testing.ledgers import LedgerWriter
from tests.patience import until

KEY = "acme-1.sesame"
LEDGER = TP("throttle", 0)
REQUESTS = TP("llm.requests", 0)


def key(key_id: str, tenant: str | None, role: Any = "submitter") -> KeyCreated:
    digest = hashlib.sha256(b"sesame").hexdigest()
    return KeyCreated(key_id=key_id, sha256=digest, role=role, tenant=tenant)


class Stack:
    """One lane, its engine and its proxy; `running` again is a restart over the same log."""

    def __init__(self, tmp_path: Path, **settings: Any) -> None:
        self.broker = MemoryBroker()
        self.settings = ThrottleSettings(kafka="127.0.0.1:1", data=tmp_path, tick_ms=5, **settings)
        self.pen = LedgerWriter(self.broker, "access")
        self.lane: Lane[EndpointState]
        self.url = ""
        self.access(
            EndpointConfigured(endpoint="chat", partition=0, tokens_per_s=400, batch_tokens=1000),
            EndpointConfigured(endpoint="far", partition=3, tokens_per_s=400, batch_tokens=1000),
            TenantRegistered(tenant="acme", default_pool="main"),
            TenantRegistered(tenant="other", default_pool="main"),
            key("acme-1", "acme"),
            key("acme-view", "acme", "viewer"),
            key("other-1", "other"),
            key("ops", None, "operator"),
        )

    def access(self, *events: Event) -> None:
        self.pen.write(events)

    async def feed(self) -> None:
        """Feed the new records of the inputs, as Faust does."""
        for tp in (TP("access", 0), REQUESTS):
            for entry in self.broker.entries(tp)[self.lane.next_offsets()[tp] :]:
                await self.lane.deliver(tp, entry.offset, entry.value)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[aiohttp.ClientSession]:
        metrics = Metrics("throttle")
        telemetry = Telemetry(Spans("throttle", "", ""), metrics)
        shell = ThrottleShell(self.settings, lambda: MemoryLog(self.broker), telemetry)
        self.lane = Lane(
            Throttle(self.settings.line),
            0,
            MemoryLog(self.broker),
            inputs=[TP("access", 0), REQUESTS],
            decoder=InputDecoder("throttle", requests_only),
            settings=LaneSettings(window_ms=1),
            on_accepted=shell.on_accepted,
        )
        await self.lane.start()
        tasks = [
            asyncio.create_task(self.lane.run()),
            asyncio.create_task(shell.drive_engine(self.lane)),
            asyncio.create_task(shell.serve_lanes(lambda: {0: self.lane})),
        ]
        await self.feed()
        await shell.serving.wait()
        await until(lambda: "acme" in self.lane.state.accounts)
        self.url = f"http://127.0.0.1:{shell.port}"
        headers = {"authorization": f"Bearer {KEY}"}
        try:
            async with aiohttp.ClientSession(self.url, headers=headers) as client:
                yield client
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in results), results
            await self.lane.stop()

    def log(self) -> list[tuple[str, bytes]]:
        """Return the (type, data) of result event in the ledger."""
        records = accepted(LEDGER, self.broker.entries(LEDGER))
        return [(raw.type, raw.data) for record in records for raw in record.raw()]

    def types(self) -> list[str]:
        return [type_ for type_, _ in self.log()]


def chat(max_tokens: int = 10, text: str = "hello", **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"model": "chat", "messages": messages, "max_tokens": max_tokens, **more}
