"""An agent without steps: it registers, heartbeats, and answers orders by reports at once."""

from __future__ import annotations

import asyncio
import random
from time import CLOCK_BOOTTIME, clock_gettime_ns
from uuid import uuid4

from benchmarks.parts.agents.executor_client import ExecutorClient, RequestRefused
from benchmarks.parts.agents.observation import Observer, wall_ms
from shared.contracts.agents import (
    MAX_REPORTS,
    Acknowledged,
    ExitedReport,
    Heartbeat,
    Hello,
    Incarnation,
    NodeReport,
    Order,
    Orders,
    OrdersRequest,
    Position,
    ReadyReport,
    RegistrationReport,
    ReportsRequest,
    StoppedReport,
    Terms,
    Welcome,
)

HELLO_S = 10.0
ORDERS_WAIT_S = 20.0
LEAST_BACKOFF_S = 0.1
MASTER_PORT = 29_500
SHAPE = {"gpu_type": "a100", "gpus": 8, "cpus": 64.0, "mem_gib": 512.0}
IDENTITY = {"boot_id": "simulated", "pid_namespace": "simulated", "hardware": ""}


class SimulatedAgent:
    """One node; `run` keeps a session until cancelled, and reports it to `observe`."""

    def __init__(
        self, node_id: str, credential: str, url: str, run_s: float, observe: Observer
    ) -> None:
        self._node_id = node_id
        self._credential = credential
        self._url = url
        self._run_s = run_s
        self._observe = observe
        self._incarnation = Incarnation(generation=1, uuid=uuid4().hex)
        self._applied = Position()
        self._states: dict[str, NodeReport | None] = {}
        """Last report of each worker that is not forgotten; None: it runs."""
        self._unacknowledged: list[NodeReport] = []
        self._first_n = 1
        self._reporting = asyncio.Lock()
        self._random = random.Random(node_id)
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Keep a session; after a failure wait as the agent does, at most `reconnect_s`."""
        failures, longest_s = 0, 10.0
        while True:
            client = ExecutorClient(self._url, self._credential)
            begun_ms = wall_ms()
            try:
                welcome = await self._hello(client)
                self._observe("session", self._node_id, begun_ms, wall_ms())
                failures, longest_s = 0, welcome.terms.reconnect_s
                await self._serve(client, welcome)
            except* RequestRefused as refused:
                for error in refused.exceptions:
                    self._observe("fault", str(error), begun_ms, wall_ms())
            finally:
                await client.close()
            wait_s = min(longest_s, LEAST_BACKOFF_S * 2**failures)
            failures += 1
            await asyncio.sleep(wait_s * self._random.uniform(0.5, 1.0))

    def reconnect(self) -> None:
        """End the session; the agent opens another one at once."""
        if self._group is not None:
            self._group.create_task(_fail())

    async def _hello(self, client: ExecutorClient) -> Welcome:
        hello = Hello(
            node_id=self._node_id,
            version="simulated",
            incarnation=self._incarnation,
            **IDENTITY,
            applied=self._applied,
            lapsed=False,
            reports_from=self._first_n,
        )
        welcome = await client.post("hello", hello, Welcome, HELLO_S)
        if welcome.action in ("fence", "behind"):
            raise RequestRefused(f"hello: {welcome.action}")
        if welcome.action == "register" and not self._unacknowledged:
            self._unacknowledged.append(self._registration(welcome.terms))
        return welcome

    def _registration(self, terms: Terms) -> RegistrationReport:
        fields = {**IDENTITY, **SHAPE, "terms_id": terms.terms_id}
        return RegistrationReport.model_validate({"incarnation": self._incarnation, **fields})

    async def _serve(self, client: ExecutorClient, welcome: Welcome) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._heartbeat(client, welcome))
            group.create_task(self._take_orders(client, welcome))

    async def _heartbeat(self, client: ExecutorClient, welcome: Welcome) -> None:
        """Send heartbeats, the first at once."""
        terms = welcome.terms
        while True:
            begun_ms = wall_ms()
            heartbeat = Heartbeat(
                session_id=welcome.session_id,
                incarnation=self._incarnation,
                sent_boot_ms=clock_gettime_ns(CLOCK_BOOTTIME) // 1_000_000,
                terms_id=terms.terms_id,
            )
            await client.send("heartbeat", heartbeat, terms.request_timeout_s)
            self._observe("heartbeat", self._node_id, begun_ms, wall_ms())
            await asyncio.sleep(terms.heartbeat_s)

    async def _take_orders(self, client: ExecutorClient, welcome: Welcome) -> None:
        await self._report(client, welcome)
        while True:
            request = OrdersRequest(
                session_id=welcome.session_id, after=self._applied, wait_s=ORDERS_WAIT_S
            )
            timeout_s = ORDERS_WAIT_S + welcome.terms.request_timeout_s
            answer = await client.post("orders", request, Orders, timeout_s)
            for order in answer.orders:
                self._obey(order, client, welcome)
            self._applied = answer.through
            await self._report(client, welcome)

    def _obey(self, order: Order, client: ExecutorClient, welcome: Welcome) -> None:
        """Note the reports that an order requires."""
        name = order.allocation_id
        match order.kind:
            case "prepare":
                self._note(name, ReadyReport(allocation_id=name, master_port=MASTER_PORT))
            case "go":
                self._observe("go", name, 0.0, wall_ms())
                self._states[name] = None
                assert self._group is not None
                self._group.create_task(self._end_later(name, client, welcome))
            case "stop":
                self._note(name, StoppedReport(allocation_id=name))
            case "confirm":
                self._confirm(name)
            case "forget":
                self._states.pop(name, None)
            case "fence":
                raise RequestRefused("orders: fence")
            case "joined" | "terms":
                pass

    def _confirm(self, name: str) -> None:
        """Repeat the last report of a worker. One that ran when the session ended has ended."""
        stopped = StoppedReport(allocation_id=name)
        if name not in self._states:
            self._note(name, stopped)
            return
        self._note(name, self._states[name] or ExitedReport(allocation_id=name, exit_code=0))

    async def _end_later(self, name: str, client: ExecutorClient, welcome: Welcome) -> None:
        await asyncio.sleep(self._run_s)
        if name in self._states and self._states[name] is None:
            ran_ms = int(1000 * self._run_s)
            self._note(name, ExitedReport(allocation_id=name, exit_code=0, ran_ms=ran_ms))
            await self._report(client, welcome)

    def _note(self, name: str, report: NodeReport) -> None:
        self._states[name] = report
        self._unacknowledged.append(report)

    async def _report(self, client: ExecutorClient, welcome: Welcome) -> None:
        """Send what is not acknowledged, one request in flight."""
        async with self._reporting:
            while self._unacknowledged:
                request = ReportsRequest(
                    session_id=welcome.session_id,
                    incarnation=self._incarnation,
                    first_n=self._first_n,
                    reports=tuple(self._unacknowledged[:MAX_REPORTS]),
                )
                timeout_s = welcome.terms.request_timeout_s
                answer = await client.post("reports", request, Acknowledged, timeout_s)
                durable = answer.n - self._first_n + 1
                del self._unacknowledged[:durable]
                self._first_n = answer.n + 1


async def _fail() -> None:
    raise RequestRefused("session: dropped on request")
