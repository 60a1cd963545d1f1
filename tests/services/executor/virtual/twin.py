"""A whole executor on the in-memory twin of the broker, with a ledger written by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from services.executor.agents.server import AgentServer
from services.executor.core.virtual.inventory import InventoryNode
from services.executor.engines.server import EngineServer
from services.executor.settings import ExecutorSettings
from services.executor.virtual.server import VirtualServer
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.base import Event, Model
from shared.contracts.node_problems import NodeProblemsReported, ReportedProblem
from shared.contracts.nodes import NodeJoined
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import ExecutorReported, NodeRegistered
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from shared.telemetry.metrics import Metrics
from tests.patience import PATIENCE_S

Server = VirtualServer | EngineServer | AgentServer
M = TypeVar("M", bound=Model)
T = TypeVar("T", ExecutorReported, NodeProblemsReported)


class Twin:
    """The broker, the writers of its ledgers, and the executor that the test starts on it."""

    def __init__(self, folder: Path, *nodes: InventoryNode, **pool: object) -> None:
        self.folder = folder
        self.nodes = nodes
        self.broker = MemoryBroker()
        self.access = LedgerWriter(self.broker, "access")
        self.placement = LedgerWriter(self.broker, "placement")
        self.pool = PoolConfigured.model_validate({"partition": 0, "pool": "demo", **pool})
        self.expected_nodes = len(nodes)
        self.stop = asyncio.Event()
        self.executor: Server | None = None
        self.metrics = Metrics("executor")
        self.connect: Callable[[], MemoryLog] = lambda: MemoryLog(self.broker)
        self._running: asyncio.Task[None] | None = None

    def start(self, **more: object) -> None:
        settings = ExecutorSettings.model_validate(
            {
                "kafka": "127.0.0.1:1",
                "data": self.folder,
                "executor_id": "e1",
                "nodes": "unused",
                **more,
            }
        )
        self.stop = asyncio.Event()
        self.executor = self.make(settings)
        self._running = asyncio.create_task(self.executor.run(self.stop))

    def make(self, settings: ExecutorSettings) -> Server:
        return VirtualServer(settings, self.nodes, self.connect, self.metrics)

    async def serving(self, **more: object) -> None:
        """Start the executor, and let its nodes join."""
        self.access.write([self.pool])
        seen = len(self.reports(NodeRegistered))
        self.start(**more)
        await self.until(lambda: len(self.reports(NodeRegistered)) >= seen + self.expected_nodes)
        self.admit(self.reports(NodeRegistered)[seen:])

    def admit(self, registered: list[NodeRegistered]) -> None:
        self.placement.write(
            [
                NodeJoined(**{**r.model_dump(exclude={"kind"}), "executor_id": "e1"})
                for r in registered
            ]
        )

    def write(self, *events: Event) -> str:
        return self.placement.write(events)

    async def leave(self) -> None:
        self.stop.set()
        await self.ended()

    async def ended(self) -> None:
        assert self._running is not None
        async with asyncio.timeout(PATIENCE_S):
            await self._running

    async def crash(self) -> None:
        """Cancel the executor: it reports nothing more."""
        assert self._running is not None
        self._running.cancel()
        await asyncio.wait([self._running])

    def reports(self, kind: type[M]) -> list[M]:
        return [r for record in self.records() for r in record.reports if isinstance(r, kind)]

    def records(self) -> list[ExecutorReported]:
        return self._of_type("reports", ExecutorReported)

    def problems(self) -> list[ReportedProblem]:
        """Return the problems of nodes that were reported."""
        records = self._of_type("reports", NodeProblemsReported)
        return [problem for record in records for problem in record.problems]

    def _of_type(self, topic: str, kind: type[T]) -> list[T]:
        """Return the messages of one type; others share the topic."""
        envelopes = (cloudevents.decode(e.value) for e in self.broker.entries(TP(topic, 0)))
        return [kind.model_validate_json(e.body) for e in envelopes if e.type == kind.TYPE]

    def messages(self, topic: str, kind: type[M]) -> list[M]:
        entries = self.broker.entries(TP(topic, 0))
        bodies = [cloudevents.decode(entry.value).body for entry in entries]
        return [kind.model_validate_json(body) for body in bodies]

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                if self._running is not None and self._running.done() and not self.stop.is_set():
                    raise AssertionError("the executor has ended") from self._running.exception()
                await asyncio.sleep(0.005)

    async def wait_for(self, kind: type[M], count: int = 1) -> list[M]:
        """Wait for that many reports of this kind, and return them all."""
        await self.until(lambda: len(self.reports(kind)) >= count)
        return self.reports(kind)
