"""The throttle's shell on loopback, over the in-memory twin, before emulated engines."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from services.throttle.app import ThrottleShell
from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from services.throttle.settings import ThrottleSettings
from shared.bus.lane.lane import Lane, LaneSettings
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.log import Headers
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.access import KeyCreated, TenantRegistered
from shared.contracts.base import Event
from shared.contracts.codec import decode_event
from shared.contracts.endpoints import EndpointConfigured, Upstream
from shared.contracts.llm import ServeLlmRequest
from shared.ledger.cloudevents import encode
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics
from shared.telemetry.setup import Telemetry
from shared.telemetry.spans import Spans
from tests.harness.ledger import accepted
from tests.patience import until

KEY = "acme-1.sesame"
MODEL = "org/Chat-7B"
ANSWERS = TP("answers.acme", 0)
LEDGER = TP("throttle", 0)
REQUESTS = TP("llm.requests", 0)


def key(key_id: str, tenant: str | None, role: Any = "submitter", **more: Any) -> KeyCreated:
    digest = hashlib.sha256(b"sesame").hexdigest()
    return KeyCreated(key_id=key_id, sha256=digest, role=role, tenant=tenant, **more)


class MemoryAnswers:
    """Answers over the in-memory twin, for the tenants that have a topic."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    async def start(self) -> None:
        return None

    async def stop(self) -> None:
        return None

    async def topics(self) -> dict[str, int]:
        return {ANSWERS.topic: 1}

    async def send(
        self, topic: str, partition: int, value: bytes, *, key: bytes, headers: Headers
    ) -> int:
        await asyncio.sleep(0)
        return self._broker.append(TP(topic, partition), value, key, headers)


class ThrottleStack:
    """One lane, its dispatcher and the proxy; `running` again is a restart over the same log."""

    def __init__(
        self, tmp_path: Path, *urls: str, service: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self.broker = MemoryBroker()
        self.settings = ThrottleSettings(kafka="127.0.0.1:1", data=tmp_path, **(service or {}))
        self.pen = LedgerWriter(self.broker, "access")
        self.lane: Lane[EndpointState]
        self.shell: ThrottleShell
        self.url = ""
        upstreams = tuple(Upstream(name=f"e{n}", url=url) for n, url in enumerate(urls))
        self.endpoint = EndpointConfigured(
            endpoint=MODEL, partition=0, upstreams=upstreams, **settings
        )
        self.access(
            self.endpoint,
            EndpointConfigured(endpoint="far", partition=3),
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
        telemetry = Telemetry(Spans("throttle", "", ""), Metrics("throttle"))
        self.shell = shell = ThrottleShell(
            self.settings,
            lambda: MemoryLog(self.broker),
            telemetry,
            lambda: MemoryAnswers(self.broker),
        )
        self.lane = Lane(
            Throttle(),
            0,
            MemoryLog(self.broker),
            inputs=[TP("access", 0), REQUESTS],
            decoder=InputDecoder("throttle", shell.decode, Throttle.consumed_events),
            settings=LaneSettings(window_ms=1),
            on_accepted=shell.on_accepted,
        )
        await self.lane.start()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.lane.stop)
            self._dispatching = asyncio.create_task(shell.dispatch(self.lane))
            running = asyncio.create_task(self.lane.run())
            for task in (running, self._dispatching, asyncio.create_task(shell.serve())):
                stack.push_async_callback(_end, task)
            await self.feed()
            await shell.serving.wait()
            await until(lambda: "acme" in self.lane.state.tenants)
            if self.endpoint.upstreams:
                await until(lambda: self.lane.state.capacity > 0)
            self.url = f"http://127.0.0.1:{shell.port}"
            yield await stack.enter_async_context(self.client())

    async def stop_dispatch(self) -> None:
        """Hand the lane over as `HeldLane` does at a stop: the proxy and the lane still run."""
        await _end(self._dispatching)

    def client(self, key: str = KEY) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(self.url, headers={"authorization": f"Bearer {key}"})

    def events(self) -> list[Event]:
        """Return the events of the ledger, in their order."""
        records = accepted(LEDGER, self.broker.entries(LEDGER))
        return [decode_event(raw.type, raw.data) for record in records for raw in record.raw()]

    async def send(self, request_id: str, body: object = None, **fields: object) -> None:
        """Append a request to `llm.requests` and feed it."""
        self.request(request_id, body, **fields)
        await self.feed()

    def request(self, request_id: str, body: object = None, **fields: object) -> None:
        """Append a request to `llm.requests`, as the gateway does."""
        data = {"request_id": request_id, "tenant": "acme", "endpoint": MODEL, **fields}
        if body is not None:
            data["body"] = body
        value = encode(
            id=f"c-{request_id}",
            source="/test",
            type=ServeLlmRequest.TYPE,
            data=json.dumps(data).encode(),
            tenant=str(data["tenant"]),
        )
        self.broker.append(REQUESTS, value)

    def answers(self) -> list[dict[str, Any]]:
        """Return the data of the tenant's answers."""
        entries = self.broker.entries(ANSWERS)
        return [json.loads(entry.value or b"")["data"] for entry in entries]

    async def answer(self, number: int = 0) -> dict[str, Any]:
        """Wait for an answer and return its data."""
        await until(lambda: len(self.answers()) > number)
        return self.answers()[number]

    def types(self) -> list[str]:
        return [event.TYPE for event in self.events()]

    def only(self, kind: type[Any]) -> Any:
        """Return the one event of that class in the ledger."""
        (event,) = (event for event in self.events() if isinstance(event, kind))
        return event


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    (result,) = await asyncio.gather(task, return_exceptions=True)
    assert result is None or isinstance(result, asyncio.CancelledError), result


def chat(max_tokens: int | None = 10, text: str = "hello", **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    limit = {} if max_tokens is None else {"max_tokens": max_tokens}
    return {"model": MODEL, "messages": messages, "ignore_eos": True, **limit, **more}
