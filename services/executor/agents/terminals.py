"""Terminals: a user's bytes and those of a program on a node meet here, and go on as they come.

The gateway enters by the token of an event of access, once; the node's agent learns of the terminal
by its poll for orders, and connects. Neither side is read faster than the other one takes it.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic_ns

from aiohttp import WSMsgType, web
from pydantic import ValidationError

from services.executor.agents.lane import READ_ERRORS, AgentLane
from services.executor.agents.refusal import Refused, limited, unavailable
from services.executor.agents.sessions import Session, Sessions
from services.executor.agents.terminal_socket import (
    CONNECT_S,
    request_of,
    send_end,
    terminal_socket,
)
from services.executor.core.agents.state import AgentWorker
from shared.bus.clock import now_ms
from shared.contracts.keys import verify_secret
from shared.contracts.node_registry import EnrolledNode
from shared.contracts.terminals import END, TerminalOpened
from shared.http.rate import NS, Rate, TokenBuckets

MOST_ADMITTED = 10_000
MOST_OPEN = 256
MOST_OF_NODE = 32
"""Of each of these two a tenant has at most half."""
BYTES = Rate(2 * 1024 * 1024, 8 * 1024 * 1024)
"""Bytes of all terminals of a node in both directions; what is above it waits."""
LEAST_CHARGED = 256
"""Bytes for which a message counts at least: small ones cost time, not bytes."""
TERMINAL_ID = re.compile(r"[0-9a-f]{32}")
NOT_HERE = "not_here"
"""Reason of an executor that holds no session of the node: another one may."""


@dataclass(slots=True)
class Meeting:
    """A terminal that the user has entered, and that its agent may enter, once."""

    node_id: str
    tenant: str
    agent: asyncio.Future[web.WebSocketResponse] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Terminals:
    """The terminals of an executor."""

    def __init__(
        self,
        lanes: Mapping[str, AgentLane],
        sessions: Sessions,
        catch_up: Callable[[], Awaitable[bool]],
    ) -> None:
        self._lanes = lanes
        self._sessions = sessions
        self._catch_up = catch_up
        self._admitted: OrderedDict[str, TerminalOpened] = OrderedDict()
        self._meetings: dict[str, Meeting] = {}
        self._buckets = TokenBuckets(BYTES)

    def __len__(self) -> int:
        return len(self._meetings)

    def admit(self, opened: TerminalOpened) -> None:
        """Take note of a terminal that was opened a moment ago."""
        if opened.admitted_until > now_ms():
            self._admitted[opened.terminal_id] = opened
            if len(self._admitted) > MOST_ADMITTED:
                self._admitted.popitem(last=False)

    def end_all(self, node_ids: Iterable[str] | None = None) -> None:
        """End the terminals of these nodes, of all if None."""
        nodes = None if node_ids is None else set(node_ids)
        for meeting in self._meetings.values():
            if nodes is None or meeting.node_id in nodes:
                meeting.over.set()

    async def serve_user(
        self, request: web.Request, terminal_id: str, token: str, failed: TokenBuckets
    ) -> web.StreamResponse:
        """Serve the side of the gateway, which gets the reason of a refusal as an end.

        Raises Refused for a wrong token, of which `failed` permits each address some.
        """
        opened = await self._authenticated(terminal_id, token, request.remote or "", failed)
        user = terminal_socket()
        try:
            worker = await self._worker(opened)
            session = self._session(worker)
            self._check_places(worker.node_id, opened.tenant)
        except Refused as refused:
            await user.prepare(request)
            await send_end(user, refused.problem.reason, refused.problem.detail)
            return user
        # From here on the token is worth nothing.
        if self._admitted.pop(terminal_id, None) is None:
            raise unknown()
        with self._meeting(terminal_id, Meeting(worker.node_id, opened.tenant)) as meeting:
            await user.prepare(request)
            try:
                requested = await request_of(user, terminal_id, worker.allocation_id)
                session.terminals.append(requested)
                session.wake.set()
                async with asyncio.timeout(CONNECT_S):
                    agent = await meeting.agent
            except (TimeoutError, ValidationError, ValueError) as error:
                is_late = isinstance(error, TimeoutError)
                cause = "node_not_connected" if is_late else "malformed"
                detail = f"node {worker.node_id}: its agent did not connect within {CONNECT_S:g} s"
                await send_end(user, cause, detail if is_late else str(error))
                return user
            await self._relay(user, agent, meeting)
            return user

    async def serve_agent(
        self, request: web.Request, node: EnrolledNode, terminal_id: str, session_id: str
    ) -> web.StreamResponse:
        """Serve the side of a node. Raises Refused for a terminal that is not the node's."""
        self._sessions.get(node.node_id, session_id)
        meeting = self._meetings.get(terminal_id)
        if meeting is None or meeting.node_id != node.node_id or meeting.agent.done():
            raise Refused(404, "unknown_terminal", "terminal: not one that this node is to open")
        agent = terminal_socket()
        await agent.prepare(request)
        if meeting.agent.done():
            await agent.close()
            return agent
        meeting.agent.set_result(agent)
        await meeting.over.wait()
        return agent

    async def _authenticated(
        self, terminal_id: str, token: str, address: str, failed: TokenBuckets
    ) -> TerminalOpened:
        """Return the terminal; one that was opened a moment ago is looked for. Raises Refused."""
        if opened := self._opened(terminal_id, token):
            return opened
        if not token or not TERMINAL_ID.fullmatch(terminal_id):
            raise unknown()
        if wait_ns := failed.take(address, monotonic_ns()):
            raise limited("wrong credentials", str(failed.rate), wait_ns / NS)
        if terminal_id not in self._admitted:
            await self._catch_up()
        opened = self._opened(terminal_id, token)
        if opened is None:
            raise unknown()
        # It was right, and is not to count.
        failed.spend(address, monotonic_ns(), -1)
        return opened

    def _opened(self, terminal_id: str, token: str) -> TerminalOpened | None:
        """Return the terminal if the token may enter it now."""
        opened = self._admitted.get(terminal_id)
        is_right = opened is not None and verify_secret(token, opened.token_sha256)
        return opened if opened and is_right and opened.admitted_until > now_ms() else None

    async def _worker(self, opened: TerminalOpened) -> AgentWorker:
        """Return the running worker. Raises Refused."""
        lane = self._lanes.get(opened.pool)
        if lane is None or not lane.caught_up.is_set():
            raise Refused(404, NOT_HERE, f"pool: {opened.pool}; not served here")
        worker = _find(lane, opened)
        if worker is None:
            try:
                await lane.read_to_end()
            except READ_ERRORS:
                raise unavailable("behind", "executor: its ledger is not read to the end") from None
            worker = _find(lane, opened)
        if worker is None:
            detail = f"job {opened.job_id}: its worker {opened.worker} does not run on a node now"
            raise Refused(409, "worker_not_running", detail)
        job = lane.state.jobs.get(opened.job_id)
        if job is not None and job.spec.validates:
            detail = f"job {opened.job_id}: it measures nodes, which a terminal would disturb"
            raise Refused(409, "measures_nodes", detail)
        return worker

    def _session(self, worker: AgentWorker) -> Session:
        """Return the session of the worker's node. Raises Refused."""
        session = self._sessions.of_node(worker.node_id)
        if session is None:
            raise Refused(404, NOT_HERE, f"node {worker.node_id}: it has no session here")
        if not session.opens_terminals:
            detail = f"node {worker.node_id}: its agent {session.version} opens none; upgrade it"
            raise Refused(409, "agent_too_old", detail)
        return session

    def _check_places(self, node_id: str, tenant: str) -> None:
        """Raise Refused where the node, the executor or the tenant's half of them is full."""
        of_node = [one for one in self._meetings.values() if one.node_id == node_id]
        for meetings, most, place in (
            (of_node, MOST_OF_NODE, f"node {node_id}"),
            (list(self._meetings.values()), MOST_OPEN, "its executor"),
        ):
            if len(meetings) >= most:
                raise limited("open terminals", f"at most {most} on {place}", 10.0)
            if sum(one.tenant == tenant for one in meetings) >= most // 2:
                shown = f"at most {most // 2} of one tenant on {place}"
                raise limited(f"open terminals of tenant {tenant}", shown, 10.0)

    @contextmanager
    def _meeting(self, terminal_id: str, meeting: Meeting) -> Iterator[Meeting]:
        self._meetings[terminal_id] = meeting
        try:
            yield meeting
        finally:
            meeting.over.set()
            meeting.agent.cancel()
            del self._meetings[terminal_id]

    async def _relay(
        self, user: web.WebSocketResponse, agent: web.WebSocketResponse, meeting: Meeting
    ) -> None:
        """Pass on both directions until one side is gone; then the other one is closed."""
        parts = [
            asyncio.ensure_future(self._pass_on(user, agent, meeting.node_id)),
            asyncio.ensure_future(self._pass_on(agent, user, meeting.node_id)),
            asyncio.ensure_future(meeting.over.wait()),
        ]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            meeting.over.set()
            for side in (user, agent):
                with suppress(ConnectionError, RuntimeError, TimeoutError):
                    async with asyncio.timeout(2):
                        await side.close()

    async def _pass_on(
        self, source: web.WebSocketResponse, target: web.WebSocketResponse, node_id: str
    ) -> None:
        while True:
            message = await source.receive()
            if message.type is not WSMsgType.BINARY or not message.data:
                return
            cost = max(LEAST_CHARGED, len(message.data))
            self._buckets.spend(node_id, monotonic_ns(), cost)
            with suppress(ConnectionError):
                await target.send_bytes(message.data)
            if message.data[:1] == END:
                return
            # A side that takes all at once would leave no other one their turn.
            await asyncio.sleep(0)
            while wait_ns := self._buckets.wait_ns(node_id, monotonic_ns()):
                await asyncio.sleep(wait_ns / NS)


def unknown() -> Refused:
    return Refused(401, "unknown_terminal", "terminal: unknown, entered, or too late")


def _find(lane: AgentLane, opened: TerminalOpened) -> AgentWorker | None:
    """Return the worker of the last attempt, if it runs, and is one of the tenant's job."""
    state = lane.state
    if opened.job_id not in state.jobs:
        return None
    workers = [state.workers[name] for name in state.of_job.get(opened.job_id, ())]
    running = [
        worker
        for worker in workers
        if worker.launch.rank == opened.worker
        and worker.launch.tenant == opened.tenant
        and worker.started is not None
        and worker.stopped is None
    ]
    return max(running, key=lambda worker: worker.launch.attempt, default=None)
