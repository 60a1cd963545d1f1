"""Engines on loopback for the tests of the upstreams: emulated ones, and rude ones."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import aiohttp

from services.throttle.upstreams.calls import UpstreamCall
from services.throttle.upstreams.pool import UpstreamPool
from shared.contracts.endpoints import EndpointConfigured, Upstream
from simulator.emulator.faults import FaultRates
from simulator.emulator.options import EmulatorOptions
from simulator.emulator.server import EngineEmulator
from tests.emulated_engine import EmulatedEngine
from tests.patience import PATIENCE_S

MODEL = "org/Model-7B"
FAST, ENDLESS = 10_000.0, 0.3
CHAT = "/v1/chat/completions"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
EVENT = b"data: {}\n\n"


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def still() -> float:
    """Return the time of a clock on which no cool-down ends."""
    return 0.0


class RawEngine:
    """A server that writes what a test decides, and keeps what it was sent."""

    def __init__(self, serve: Serve) -> None:
        self.serve = serve
        self.url = ""
        self.connections = 0
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.closed = asyncio.Event()

    async def on_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self.serve(reader, writer)
        finally:
            writer.close()
            self.closed.set()

    async def read_request(self, reader: asyncio.StreamReader) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            (int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-l")),
            0,
        )
        self.heads.append(head)
        self.bodies.append(await reader.readexactly(length))

    def header(self, name: str) -> list[str]:
        """Return the values of a header in the last request."""
        lines = (line.partition(": ") for line in self.heads[-1].splitlines())
        return [value for key, _, value in lines if key.lower() == name]


@asynccontextmanager
async def raw_engine(
    serve: Callable[[RawEngine], Serve] | bytes, ssl: Any = None
) -> AsyncIterator[RawEngine]:
    """Serve raw bytes to each request, or what the function says."""

    async def write(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await engine.read_request(reader)
            assert isinstance(serve, bytes)
            writer.write(serve)
            await writer.drain()

    engine = RawEngine(write)
    if not isinstance(serve, bytes):
        engine.serve = serve(engine)
    tasks: set[asyncio.Task[Any]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(engine.on_connection(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=ssl)
    port = server.sockets[0].getsockname()[1]
    engine.url = f"http{'s' if ssl else ''}://127.0.0.1:{port}"
    try:
        yield engine
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def emulated(speed: float = FAST, **options: Any) -> AsyncIterator[EmulatedEngine]:
    options.setdefault("faults", FaultRates({}, by_header=True))
    models = options.pop("models", (MODEL,))
    emulator = EngineEmulator(EmulatorOptions(models, speed=speed, **options))
    async with (
        emulator.listening("127.0.0.1", 0) as port,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE_S)) as session,
    ):
        yield EmulatedEngine(port, session)


@asynccontextmanager
async def emulated_pair(
    speed: float = FAST,
) -> AsyncIterator[tuple[EmulatedEngine, EmulatedEngine]]:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(emulated(speed))
        yield first, await stack.enter_async_context(emulated(speed))


def endpoint(
    *urls: str, balance: Any = "least_loaded", adapters: tuple[str, ...] = (), **fields: Any
) -> EndpointConfigured:
    """Return an endpoint with the upstreams u0, u1, ... at the addresses."""
    upstreams = tuple(
        Upstream(name=f"u{index}", url=url, **fields) for index, url in enumerate(urls)
    )
    return EndpointConfigured(
        endpoint="chat", partition=0, upstreams=upstreams, balance=balance, adapters=adapters
    )


@asynccontextmanager
async def pool_of(
    *urls: str,
    secrets: Mapping[str, str] | None = None,
    tls: Any = None,
    clock: Callable[[], float] = time.monotonic,
    **fields: Any,
) -> AsyncIterator[UpstreamPool]:
    pool = UpstreamPool((secrets or {}).get, clock, tls=tls)
    pool.configure(endpoint(*urls, **fields))
    try:
        yield pool
    finally:
        await pool.close()


@asynccontextmanager
async def probing(pool: UpstreamPool) -> AsyncIterator[None]:
    task = asyncio.create_task(pool.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def chat(
    fault: str | None = None,
    prefix: str = "",
    first_byte_s: float = PATIENCE_S,
    idle_s: float = PATIENCE_S,
    headers: Mapping[str, str] | None = None,
    **fields: Any,
) -> UpstreamCall:
    """Return a streamed request of 8 tokens."""
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "max_tokens": 8,
        "ignore_eos": True,
        **fields,
    }
    sent = dict(headers or {}) | ({"x-berth-fault": fault} if fault else {})
    return UpstreamCall(CHAT, body, sent, first_byte_s, idle_s, prefix)


async def read(pool: UpstreamPool, call: UpstreamCall) -> tuple[str, int, bytes]:
    """Return upstream, status and body of an answer."""
    async with pool.send(call) as response:
        body = b"".join([chunk async for chunk in response.chunks])
        return response.upstream, response.status, body


def tokens(body: bytes) -> int:
    events = [line for line in body.split(b"\n\n") if line.startswith(b"data: {")]
    deltas = [json.loads(event[6:])["choices"][0]["delta"] for event in events]
    return sum(bool(delta.get("content")) for delta in deltas)
