"""An executor of nodes with an agent: identities, a lane per pool, and the HTTP server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from aiohttp import web

from services.executor.agents.answers import OrderAnswers
from services.executor.agents.bundles import Bundles
from services.executor.agents.http import HEADER_BYTES, AgentApi
from services.executor.agents.lane import AgentLane
from services.executor.agents.refusal_log import RefusalLog
from services.executor.agents.requests import AgentRequests
from services.executor.agents.secrets import Secrets
from services.executor.agents.sessions import Sessions, revoked, stopping
from services.executor.agents.terminals import Terminals
from services.executor.settings import ExecutorSettings
from services.executor.soft_outbox import SoftOutbox
from shared.bundles.bundle_store import BundleStore
from shared.bus.hosting.access import AccessFollower
from shared.bus.hosting.probe import probe_lag
from shared.bus.logs.log import Log
from shared.contracts.enrolment import NodeEnrolled, NodeRevoked
from shared.contracts.node_registry import NodeRegistry
from shared.contracts.pools import PoolConfigured
from shared.contracts.terminals import TerminalOpened
from shared.http.http_listener import listen
from shared.http.server_settings import server_certificate
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.telemetry.figures import Figure
from shared.telemetry.metrics import Metrics

CLOSE_S = 2.0
IDLE_S = 20.0
"""s after which a connection without a whole request is closed; an agent then makes a new one."""


class NodeDirectory(AccessFollower):
    """Follows `access`; calls `on_revoked` with a node and `on_change` after each record."""

    def __init__(
        self,
        open_log: Callable[[], Log],
        on_revoked: Callable[[str], None],
        on_change: Callable[[], None],
        on_terminal: Callable[[TerminalOpened], None],
    ) -> None:
        super().__init__(open_log)
        self._on_terminal = on_terminal
        self._on_revoked = on_revoked
        self._on_change = on_change

    def fold(self, accepted: Accepted) -> None:
        for fact in accepted.facts():
            self.view.apply(fact.event)
            if isinstance(fact.event, TerminalOpened):
                self._on_terminal(fact.event)
            if isinstance(fact.event, NodeRevoked | NodeEnrolled):
                self._on_revoked(fact.event.node_id)
        self._on_change()

    async def number_of(self, tenant: str) -> int | None:
        """Return the number of a tenant, also of one that was registered a moment ago."""
        if tenant not in self.view.tenants:
            await self.catch_up()
        registered = self.view.tenants.get(tenant)
        return registered.number if registered else None


class AgentServer:
    """Serves the agents of its pools until `stop` is set.

    It stops no worker, however it ends: agents go on, and resume at this or another executor.
    """

    def __init__(
        self, settings: ExecutorSettings, connect: Callable[[], Log], metrics: Metrics
    ) -> None:
        self._settings = settings
        self._connect = connect
        self.metrics = metrics
        self._lanes: dict[str, AgentLane] = {}
        self._sessions = Sessions()
        certificate = server_certificate(settings)
        metrics.watch_certificate(certificate)
        self._tls = certificate.context if certificate is not None else None
        self._changed = asyncio.Event()
        self._lane_tasks: list[asyncio.Task[None]] = []
        self._listening = False
        self._soft_log = connect()
        self._soft = SoftOutbox(self._soft_log, settings.executor_id, metrics)
        self._directory = NodeDirectory(
            connect, self._end_node, self._changed.set, lambda opened: self._terminals.admit(opened)
        )
        self._requests = AgentRequests(
            self._lanes,
            self._sessions,
            self._soft,
            settings.executor_id,
            OrderAnswers(
                self._directory.number_of,
                Secrets(self._directory, settings.secret_keys, settings.secrets),
            ),
            settings.executors,
            lambda: self._directory.view.installation,
            Bundles(BundleStore(settings.bundles) if settings.bundles else None),
        )
        self._terminals = Terminals(self._lanes, self._sessions, self._directory.catch_up)
        self._api = AgentApi(
            self._requests,
            self._registry,
            self._directory.catch_up,
            RefusalLog(metrics),
            self._terminals,
        )
        metrics.watch(self._figures)

    def health(self) -> dict[str, object]:
        """Return readiness: it listens, and the ledger of every pool is read."""
        if not self._listening:
            return {"ready": False, "reason": "access is being read"}
        late = [
            lane.pool
            for lane in self._lanes.values()
            if not (lane.caught_up.is_set() and lane.is_fresh())
        ]
        if late:
            return {"ready": False, "reason": f"ledgers not read to their end: {late}"}
        return {"ready": True, "pools": sorted(self._lanes), "sessions": len(self._sessions)}

    def _figures(self) -> Iterator[Figure]:
        for (pool, version), nodes in sorted(self._sessions.count().items()):
            yield Figure("berth_agent_sessions", nodes, (pool, version))

    async def behind(self) -> dict[TP, int]:
        """Request from the broker how many records of each ledger are not read yet."""
        lag = await self._directory.behind()
        for lane in list(self._lanes.values()):
            if lane.caught_up.is_set():
                lag |= await lane.behind()
        return lag

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; a failure of any part ends all."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(work)
                for work in (
                    self._directory.run(),
                    self._soft.run(),
                    probe_lag(self.behind, self.metrics),
                )
            ]
            tasks.append(group.create_task(self._keep_lanes(group)))
            await _either(stop, self._directory.caught_up)
            if not stop.is_set():
                async with self._serving():
                    await stop.wait()
            for task in tasks:
                task.cancel()
            for task in self._lane_tasks:
                task.cancel()
        await self._soft_log.stop()

    async def _keep_lanes(self, group: asyncio.TaskGroup) -> None:
        """Start a lane for each pool of agents as soon as it is configured."""
        await self._directory.caught_up.wait()
        while True:
            self._changed.clear()
            for pool in self._directory.view.pools.values():
                if self._serves(pool) and pool.pool not in self._lanes:
                    lane = AgentLane(
                        self._settings, pool, self._connect, self.metrics, self._sessions.wake
                    )
                    self._lanes[pool.pool] = lane
                    self._lane_tasks.append(group.create_task(lane.run()))
            await self._changed.wait()

    def _serves(self, pool: PoolConfigured) -> bool:
        chosen = self._settings.pools_of_agents
        return "agent" in pool.backends and (not chosen or pool.pool in chosen)

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        runner = web.AppRunner(
            self._api.application(),
            access_log=None,
            max_field_size=HEADER_BYTES,
            shutdown_timeout=CLOSE_S,
            keepalive_timeout=IDLE_S,
        )
        await runner.setup()
        listener = await listen(runner, self._settings, self._tls)
        self._listening = True
        try:
            yield
        finally:
            self._listening = False
            listener.close()
            self._sessions.end_all(stopping)
            self._terminals.end_all()
            await runner.cleanup()

    def _end_node(self, node_id: str) -> None:
        """End what a node holds whose credential is not valid any more."""
        self._sessions.end_all(revoked, (node_id,))
        self._terminals.end_all((node_id,))

    def _registry(self) -> NodeRegistry | None:
        ready = self._directory.caught_up.is_set()
        return self._directory.view.enrolled if ready else None


async def _either(stop: asyncio.Event, ready: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in (stop, ready)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
