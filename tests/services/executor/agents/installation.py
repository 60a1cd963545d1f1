"""An executor of agents on the in-memory twin of the broker, with ledgers written by hand."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from infra.machine.process import free_ports
from services.executor.agents.server import AgentServer
from services.executor.settings import ExecutorSettings
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.log import Log
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.enrolment import NodeEnrolled
from shared.contracts.keys import hash_secret
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics
from tests.patience import PATIENCE_S
from tests.services.executor.core.agents.history import ENQUEUED, PLACED, POOL, UUID, joined

FAR_AT = 4_000_000_000_000


def enrolled(node_id: str, **fields: Any) -> NodeEnrolled:
    return NodeEnrolled.model_validate(
        {
            "node_id": node_id,
            "pool": "gpu",
            "credential_sha256": hash_secret("s3"),
            "approved": True,
            "expires_at": FAR_AT,
            "hardware": "hw",
            **fields,
        }
    )


class Agent:
    """A client of one node."""

    def __init__(self, client: aiohttp.ClientSession, node_id: str, secret: str = "s3") -> None:
        self.client = client
        self.node_id = node_id
        self.incarnation = {"generation": 1, "uuid": UUID}
        self.headers = {"Authorization": f"Bearer {node_id}.{secret}"}
        self.session_id = ""

    async def post(self, name: str, body: object) -> tuple[int, Any]:
        """Return the status, and the body if there is one."""
        path = f"/agent/v1/{name}"
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        async with self.client.post(path, data=data, headers=self.headers) as answer:
            raw = await answer.read()
            return answer.status, msgspec.json.decode(raw) if raw else None

    async def hello(self, **fields: object) -> dict[str, Any]:
        body = {
            "node_id": self.node_id,
            "version": "1",
            "incarnation": self.incarnation,
            "boot_id": "boot",
            "pid_namespace": "p",
            "hardware": "hw",
            "applied": {},
            "lapsed": False,
            "reports_from": 1,
        }
        status, welcome = await self.post("hello", {**body, **fields})
        assert status == 200, welcome
        self.session_id = welcome["session_id"]
        return dict(welcome)

    async def orders(self, after: object = None, wait_s: float = 0) -> tuple[int, Any]:
        body = {"session_id": self.session_id, "after": after or {}, "wait_s": wait_s}
        return await self.post("orders", body)

    async def reports(self, *reports: object, first_n: int = 1) -> tuple[int, Any]:
        return await self.post(
            "reports",
            {
                "session_id": self.session_id,
                "incarnation": self.incarnation,
                "first_n": first_n,
                "reports": reports,
            },
        )

    async def send_heartbeat(self, sent_boot_ms: int, **more: object) -> int:
        body = {
            "session_id": self.session_id,
            "incarnation": self.incarnation,
            "sent_boot_ms": sent_boot_ms,
            **more,
        }
        return (await self.post("heartbeat", body))[0]


class Installation:
    """The broker, the writers of its ledgers, and the executor that serves agents."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.broker = MemoryBroker()
        self.access = LedgerWriter(self.broker, "access")
        self.placement = LedgerWriter(self.broker, "placement", 1)
        self.connect: Callable[[], Log] = lambda: MemoryLog(self.broker)
        [self.port] = free_ports(1)
        self.settings = ExecutorSettings.model_validate(
            {
                "kafka": "127.0.0.1:1",
                "data": folder,
                "executor_id": "e1",
                "port": self.port,
                **settings,
            }
        )
        self.access.write([POOL, enrolled("n1"), enrolled("n2")])
        self.placement.write([POOL])

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[AgentServer]:
        """Run the executor until the block ends."""
        server = AgentServer(self.settings, self.connect, Metrics("executor"))
        stop = asyncio.Event()
        running = asyncio.create_task(server.run(stop))
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not server.health()["ready"] or not server.health()["pools"]:
                    assert not running.done(), running.exception()
                    await asyncio.sleep(0.01)
            yield server
        finally:
            stop.set()
            await running

    @asynccontextmanager
    async def agent(
        self, node_id: str, secret: str = "s3", trust: ssl.SSLContext | bool = True
    ) -> AsyncIterator[Agent]:
        scheme = "https" if self.settings.tls_cert else "http"
        connector = aiohttp.TCPConnector(ssl=trust)
        async with aiohttp.ClientSession(
            f"{scheme}://127.0.0.1:{self.port}", connector=connector
        ) as client:
            yield Agent(client, node_id, secret)

    def place(self) -> str:
        """Let the nodes join and place a gang on them; return the id of rank 1, on n1."""
        self.placement.write([joined("n1"), joined("n2"), ENQUEUED])
        return f"{self.placement.write([PLACED])}/1"

    def sent(self, topic: str) -> list[dict[str, Any]]:
        """Return the data of the records of a topic."""
        entries = self.broker.entries(TP(topic, 1))
        return [msgspec.json.decode(entry.value or b"")["data"] for entry in entries]
