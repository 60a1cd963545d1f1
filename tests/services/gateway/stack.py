"""A real gateway process on a real broker and a real Postgres, with tenants and keys."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg

from infra.broker import tansu, topics
from infra.machine.process import Running, free_ports, is_open, spawn
from shared.bus.logs.log import Entry
from shared.contracts.access import KeyCreated, KeyRevoked, TenantRegistered
from shared.contracts.base import Event
from shared.contracts.codec import encode_event
from shared.contracts.endpoints import EndpointConfigured, Upstream
from shared.contracts.keys import hash_secret
from shared.contracts.pools import PoolConfigured
from shared.contracts.topics import TOPICS, submissions, tenant_requests
from shared.ledger.partition import TP
from shared.process.connection import Connection
from shared.projections.ledger_events import LedgerEvent
from shared.projections.project import write_rows
from shared.projections.rebuild import TABLE_NAMES
from shared.secrets.secret_keys import FILE, make_keys
from tests.broker_clients import log_of
from tests.patience import PATIENCE_S
from tests.services.gateway.answers import check_answer
from tests.services.publisher.ledgers import Ledgers

Answer = tuple[int, dict[str, Any], Mapping[str, str]]
LANES = 4
KEYS = {
    "ada": "ada-key.s1",
    "ada-view": "ada-view.s2",
    "bob": "bob-key.s3",
    "op": "op-key.s4",
    "root": "root-key.s5",
    "revoked": "old-key.s6",
}


def _key(name: str, role: str, tenant: str | None) -> KeyCreated:
    key_id, _, secret = KEYS[name].rpartition(".")
    return KeyCreated.model_validate(
        {"key_id": key_id, "sha256": hash_secret(secret), "role": role, "tenant": tenant}
    )


FACTS: tuple[Event, ...] = (
    PoolConfigured(pool="main", partition=1),
    PoolConfigured(pool="side", partition=2),
    EndpointConfigured(
        endpoint="llama",
        partition=3,
        upstreams=(Upstream(name="a", url="http://engine-1.test:8000", key="engine-key"),),
    ),
    TenantRegistered(tenant="ada", default_pool="main"),
    TenantRegistered(tenant="bob", default_pool="side"),
    _key("ada", "submitter", "ada"),
    _key("ada-view", "viewer", "ada"),
    _key("bob", "submitter", "bob"),
    _key("op", "operator", None),
    _key("root", "admin", None),
    _key("revoked", "admin", None),
    KeyRevoked(key_id="old-key"),
)


@dataclass
class Stack:
    """Addresses and ledgers of what runs."""

    kafka: str
    url: str
    dsn: str
    folder: Path
    ledgers: Ledgers
    broker: Running

    @asynccontextmanager
    async def client(self, key: str = "ada") -> AsyncIterator[aiohttp.ClientSession]:
        headers = {"Authorization": f"Bearer {KEYS[key]}"} if key else {}
        async with aiohttp.ClientSession(self.url, headers=headers) as session:
            yield session

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str = "ada",
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        once: bool = False,
    ) -> Answer:
        """Return status, content and headers of the answer.

        Its content has the schema of the OpenAPI document, and no field beside it.

        A 503 comes from a broker or a database that is too busy to answer in time: the request is
        made again, except `once`.
        """
        data = json.dumps(body).encode() if body is not None else raw
        all_headers = {"Content-Type": "application/json", **(headers or {})}
        async with self.request(
            method, path, key=key, data=data, headers=all_headers, once=once
        ) as answer:
            content = await answer.json(content_type=None)
        check_answer(method, path, answer.status, content)
        return answer.status, content, answer.headers

    @asynccontextmanager
    async def request(
        self,
        method: str,
        path: str,
        *,
        key: str = "ada",
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        once: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the answer with its body unread; as `call`."""
        async with self.client(key) as client:
            async with asyncio.timeout(PATIENCE_S):
                answer = await client.request(method, path, data=data, headers=headers)
                while answer.status == 503 and not once:
                    answer.close()
                    await asyncio.sleep(0.1)
                    answer = await client.request(method, path, data=data, headers=headers)
            async with answer:
                yield answer

    async def append(self, ledger: str, partition: int, *events: Event) -> None:
        """As a decider would, on the real broker."""
        self.ledgers.bus = log_of(Connection(self.kafka, idempotent=False))
        await self.ledgers.append(ledger, partition, *events)
        await self.ledgers.bus.stop()

    async def put(self, topic: str, partition: int, *values: bytes) -> list[int]:
        """Return the offsets of the records."""
        bus = log_of(Connection(self.kafka, idempotent=False))
        offsets = [await bus.append(TP(topic, partition), value) for value in values]
        await bus.stop()
        return offsets

    async def read(self, topic: str, partition: int) -> list[Entry]:
        """All that lies there now."""
        return (await self._read({TP(topic, partition)}))[TP(topic, partition)]

    async def command(self, command_id: str, topic: str = "commands") -> dict[str, Any] | None:
        """The envelope with that id, and the partition where it lies."""
        lanes = range(1) if TOPICS[topic].single_partition else range(LANES)
        for place, entries in (await self._read({TP(topic, lane) for lane in lanes})).items():
            for value in (entry.value or b"" for entry in entries):
                if command_id.encode() in value:
                    return {**json.loads(value), "lane": place.partition}
        return None

    async def _read(self, places: Collection[TP]) -> dict[TP, list[Entry]]:
        """To the ends that the broker names, and on while something comes: it may name less."""
        bus = log_of(Connection(self.kafka, idempotent=False))
        await bus.start()
        ends = {tp: await bus.end(tp) for tp in places}
        feed = await bus.feed(dict.fromkeys(places, 0), lossy=True)
        entries: dict[TP, list[Entry]] = {tp: [] for tp in places}
        try:
            async with asyncio.timeout(PATIENCE_S):
                while (polled := await feed.poll(0.7, 5000)) or any(
                    len(entries[tp]) < end for tp, end in ends.items()
                ):
                    for tp, more in polled.items():
                        entries[tp].extend(more)
        finally:
            await feed.close()
            await bus.stop()
        return entries

    async def project(
        self, ledger: str, partition: int, seq: int, *events: Event, at: int = 0
    ) -> None:
        """Rows of the read models, by the projection's own folds."""
        conn = await asyncpg.connect(self.dsn, server_settings={"search_path": "berth"})
        lines = []
        for index, event in enumerate(events):
            raw = encode_event(event)
            lines.append(
                LedgerEvent(
                    ledger,
                    partition,
                    seq,
                    index,
                    at or 1000 + seq,
                    event.TYPE,
                    event.subject,
                    json.loads(raw),
                    raw,
                    "",
                    TRACE,
                )
            )
        async with conn.transaction():
            await write_rows(conn, lines)
        await conn.close()

    async def clear_rows(self) -> None:
        """Empty the read models of what other modules projected."""
        conn = await asyncpg.connect(self.dsn, server_settings={"search_path": "berth"})
        await conn.execute(f"TRUNCATE {', '.join(TABLE_NAMES)}")
        await conn.close()


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def as_gateway(dsn: str) -> str:
    """The same database, entered as the gateway does."""
    role = dsn.replace("//berth@", "//berth_gateway@")
    return role.replace("/passwords/berth", "/passwords/berth_gateway")


def start_broker(folder: Path) -> tuple[Running, str]:
    [port] = free_ports(1)
    running = tansu.start(folder, port)
    kafka = f"127.0.0.1:{port}"
    specs = (*TOPICS.values(), submissions("ada"), submissions("bob"), tenant_requests("ada"))
    topics.create(Connection(kafka, idempotent=False), LANES, False, specs)
    return running, kafka


def start_gateway(folder: Path, kafka: str, dsn: str, **more: str) -> tuple[Running, str]:
    [port] = free_ports(1)
    make_keys(folder / FILE)
    env = {
        **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        "BERTH_KAFKA": kafka,
        "BERTH_DATA": str(folder),
        "BERTH_SECRET_KEYS": str(folder / FILE),
        "BERTH_BUNDLES": str(folder / "bundles"),
        "BERTH_JOB_LOGS": str(folder / "job-logs"),
        "BERTH_PARTITIONS": str(LANES),
        "BERTH_IDEMPOTENT": "0",
        "BERTH_POSTGRES": dsn,
        "BERTH_PORT": str(port),
        "BERTH_INSTANCE": f"gateway-{port}",
        **more,
    }
    command = [sys.executable, "-W", "error", "-m", "services.gateway"]
    running = spawn("gateway", command, folder / f"gateway-{port}.log", env)
    running.wait_ready(lambda: is_open(port), PATIENCE_S)
    return running, f"http://127.0.0.1:{port}"


def start_access(folder: Path, kafka: str) -> Running:
    """Start the service access, which decides the commands of a gateway beside it."""
    env = {
        "PATH": os.environ["PATH"],
        "BERTH_KAFKA": kafka,
        "BERTH_DATA": str(folder / "access"),
        "BERTH_IDEMPOTENT": "0",
        "BERTH_LANES": "0",
    }
    command = [sys.executable, "-W", "error", "-m", "services.access"]
    return spawn("access", command, folder / "access.log", env)


async def fill_access(kafka: str) -> Ledgers:
    bus = log_of(Connection(kafka, idempotent=False))
    ledgers = Ledgers(bus)
    await ledgers.append("access", 0, *FACTS)
    await bus.stop()
    return ledgers


async def ready(url: str, trust: ssl.SSLContext | bool = True) -> None:
    async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession(url) as session:
        while True:
            async with session.get("/ready", ssl=trust) as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.1)
