"""The throttle service as a process on a broker of its own, before one emulated engine."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp

from benchmarks.parts.stack import as_record
from infra.broker import kafka, tansu, topics
from infra.machine.process import Running, free_ports, is_open, spawn
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.producer import TopicProducer
from shared.contracts.access import CreateKey, RegisterTenant
from shared.contracts.base import Command
from shared.contracts.endpoints import ConfigureEndpoint, Upstream
from shared.contracts.pools import ConfigurePool
from shared.process.connection import Connection

ROOT = Path(__file__).parents[3]
MODEL = "org/Bench-7B"
TENANT, SECRET = "bench", "sesame"
KEY = f"{TENANT}-key.{SECRET}"
LANE = 0
READY_S = 60.0
SPEED = 1e6
"""Speed of the engine: its durations vanish."""
EngineStarter = Callable[[Path], tuple[Running, str]]
"""Starts an engine with its log in the folder; returns it with its address."""


@dataclass(slots=True)
class ProxySite:
    """Processes of one measurement; `start_throttle` may be called again after a kill."""

    folder: Path
    connection: Connection
    engine_url: str
    port: int
    variables: Mapping[str, str] = field(default_factory=dict)
    broker: Running | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log(self) -> KafkaLog:
        return KafkaLog(self.connection, client="bench")

    def start(self, service: str, **variables: str) -> Running:
        """Start a service of this site, which holds its lane without a consumer group."""
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "BERTH_KAFKA": self.connection.servers,
            "BERTH_PARTITIONS": "1",
            "BERTH_DATA": str(self.folder / service),
            "BERTH_IDEMPOTENT": str(int(self.connection.idempotent)),
            "BERTH_LANES": str(LANE),
            **self.variables,
            **variables,
        }
        command = [sys.executable, "-m", f"services.{service}"]
        return spawn(service, command, self.folder / f"{service}.log", environment)

    def start_throttle(self) -> Running:
        return self.start("throttle", BERTH_PORT=str(self.port))

    async def configure(self, *commands: Command) -> None:
        """Send commands to the access service."""
        producer = TopicProducer(self.connection, client="bench")
        await producer.start()
        try:
            for command in commands:
                await producer.send("access.commands", 0, as_record(command))
        finally:
            await producer.stop()


@asynccontextmanager
async def proxy_site(
    *,
    is_durable: bool,
    speed: float = SPEED,
    variables: Mapping[str, str] | None = None,
    start_engine: EngineStarter | None = None,
) -> AsyncIterator[ProxySite]:
    """Yield a site whose access service and engine run, without the throttle.

    Its broker is Kafka, which flushes each record of a ledger, or the embedded one in memory.
    Without another starter the engine is an emulated one of that speed.
    """
    with ExitStack() as open_:
        folder = Path(tempfile.mkdtemp(prefix="berth-proxy-"))
        open_.callback(shutil.rmtree, folder, ignore_errors=True)
        broker_port, port = free_ports(2)
        starter = _kafka if is_durable else tansu.start
        broker = await asyncio.to_thread(starter, folder / "broker", broker_port)
        open_.callback(broker.stop)
        connection = Connection(f"127.0.0.1:{broker_port}", idempotent=is_durable)
        await asyncio.to_thread(topics.create, connection, 1, is_durable)
        start = start_engine or partial(_emulator, speed=speed)
        engine, url = await asyncio.to_thread(start, folder)
        open_.callback(engine.stop)
        site = ProxySite(folder, connection, url, port, variables or {}, broker)
        open_.callback(site.start("access").stop)
        yield site


def _kafka(folder: Path, port: int) -> Running:
    return kafka.start(folder, port, plain=True)


def _emulator(folder: Path, speed: float) -> tuple[Running, str]:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "cli", "engine", "--model", MODEL, "--port", str(port)]
    limits = ["--speed", f"{speed:g}", "--kv-tokens", "1000000"]
    running = spawn("engine", [*command, *limits], folder / "engine.log", _environment())
    running.wait_ready(lambda: is_open(port), READY_S)
    return running, f"http://127.0.0.1:{port}"


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(Path.home())}


def settings_of(site: ProxySite, **settings: object) -> tuple[Command, ...]:
    """Return the commands that make the tenant, its key and the endpoint."""
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    upstream = Upstream(name="e0", url=site.engine_url, max_requests=256)
    endpoint = {"endpoint": MODEL, "upstreams": (upstream,), **settings}
    return (
        ConfigurePool(pool="main"),
        RegisterTenant(tenant=TENANT, default_pool="main"),
        CreateKey(key_id=f"{TENANT}-key", sha256=digest, role="submitter", tenant=TENANT),
        ConfigureEndpoint.model_validate(endpoint),
    )


def body(tokens: int, *, stream: bool = False) -> dict[str, object]:
    """Return a chat request for an answer of so many tokens."""
    text = "Say something about the weather of the coming week. " * 8
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": tokens,
        "ignore_eos": True,
        **({"stream": True} if stream else {}),
    }


async def until_served(url: str, key: str = KEY) -> None:
    """Wait until a request gets its answer. Raises TimeoutError."""
    async with asyncio.timeout(READY_S), session(url, key) as client:
        while True:
            try:
                async with client.post("/v1/chat/completions", json=body(2)) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


def session(url: str, key: str = KEY) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        url, headers={"authorization": f"Bearer {key}"}, connector=aiohttp.TCPConnector(limit=0)
    )
