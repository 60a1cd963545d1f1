"""The HTTP side of sessions: authentication, bounds, parsing, and refusals as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic_ns
from typing import NamedTuple

from aiohttp import web
from pydantic import BaseModel, ValidationError

from services.executor.agents.body import KIB, read_body, replace_nul
from services.executor.agents.refusal import Refused, limited, malformed, unavailable
from services.executor.agents.refusal_log import RefusalLog
from services.executor.agents.requests import AgentRequests
from services.executor.agents.terminal_http import TerminalApi
from services.executor.agents.terminals import Terminals
from shared.bus.clock import now_ms
from shared.contracts.agents import (
    AGENT_API,
    EXECUTOR_REQUESTS,
    BundlePartRequest,
    BundleRequest,
    Heartbeat,
    Hello,
    OrdersRequest,
    ReportsRequest,
    Stream,
)
from shared.contracts.keys import parse_bearer, parse_key
from shared.contracts.node_registry import EnrolledNode, NodeRegistry, Refusal
from shared.http.rate import NS, Rate, TokenBuckets

HEADER_BYTES = 8 * KIB
FAILED = Rate(1, 100)
"""Wrong credentials of one address."""
JSON = "application/json"
WRITE_S = 20.0
"""Time for the body of a large answer."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AgentRequest(NamedTuple):
    """A request: its message and its largest body."""

    message: type[BaseModel]
    max_bytes: int


MAX_KIB = {
    "hello": 1024,
    "heartbeat": 4,
    "orders": 4,
    "reports": 512,
    "stream": 640,
    "bundle": 4,
    "part": 4,
}
REQUESTS = {
    name: AgentRequest(message, MAX_KIB[name] * KIB)
    for name, (message, _) in EXECUTOR_REQUESTS.items()
}
PATHS = ", ".join(f"{AGENT_API}/{name}" for name in REQUESTS)


class AgentApi:
    """Serves `EXECUTOR_REQUESTS`; `registry` returns the present fold of the enrolments."""

    def __init__(
        self,
        requests: AgentRequests,
        registry: Callable[[], NodeRegistry | None],
        catch_up: Callable[[], Awaitable[bool]],
        refusals: RefusalLog,
        terminals: Terminals,
    ) -> None:
        self._terminals = terminals
        self._requests = requests
        self._registry = registry
        self._catch_up = catch_up
        self._refusals = refusals
        self._failed = TokenBuckets(FAILED)

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_post(f"{AGENT_API}/{{name}}", self._refusing(self._handle))
        terminals = TerminalApi(self._terminals, self._authenticated, self._failed)
        terminals.add_to(app, self._refusing)
        return app

    def _refusing(self, handle: Handler) -> Handler:
        """Return a handler that answers what the given one refuses."""

        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                return await handle(request)
            except Refused as refused:
                self._refusals.note(_credential(request), request.remote or "", refused)
                wait_s = refused.retry_after_s
                headers = {"Retry-After": str(wait_s)} if wait_s else {}
                return _json(refused.problem, refused.status, headers)

        return answer

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        expected = REQUESTS.get(request.match_info["name"])
        if expected is None:
            raise Refused(404, "not_found", f"path: {request.path[:64]!r}; {PATHS} are allowed")
        node = await self._authenticated(request)
        body = await self._read(request, expected, node.node_id)
        try:
            message = expected.message.model_validate_json(body)
        except ValidationError as error:
            raise malformed(error) from None
        if isinstance(message, BundlePartRequest):
            async with self._requests.part(node, message) as part:
                return await _written(request, part)
        answer = await self._answer(request, node, message, len(body))
        return _json(answer) if answer is not None else web.Response(status=204)

    async def _answer(
        self, request: web.Request, node: EnrolledNode, message: BaseModel, size_bytes: int
    ) -> BaseModel | None:
        match message:
            case Hello():
                return await self._requests.hello(node, message, request.remote or "")
            case Heartbeat():
                await self._requests.heartbeat(node, message)
                return None
            case OrdersRequest():
                return await self._requests.orders(node, message)
            case ReportsRequest():
                return await self._requests.reports(node, message, size_bytes)
            case Stream():
                await self._requests.stream(node, message)
                return None
            case BundleRequest():
                return await self._requests.bundle(node, message)
            case _:
                raise TypeError(f"no answer to {type(message).__name__}")

    async def _read(self, request: web.Request, expected: AgentRequest, node_id: str) -> bytes:
        """Return the body once the node has room for it; no other request delays a heartbeat."""
        limits = self._requests.limits
        if expected.message is Heartbeat:
            await limits.heartbeats.take(node_id)
            return await read_body(request, expected.max_bytes)
        await limits.requests.take(node_id)
        await limits.bytes.take(node_id, 0)
        body = await read_body(request, expected.max_bytes)
        limits.bytes.spend(node_id, len(body))
        return replace_nul(body)

    async def _authenticated(self, request: web.Request) -> EnrolledNode:
        """Return the node of the credential; one that joined a moment ago is looked for."""
        registry = self._registry()
        if registry is None:
            raise unavailable("starting", "executor: access is being read")
        credential = _credential(request)
        answer = registry.authenticate(credential, now_ms())
        if isinstance(answer, EnrolledNode):
            return answer
        address = request.remote or ""
        if wait_ns := self._failed.take(address, monotonic_ns()):
            raise limited("wrong credentials", str(FAILED), wait_ns / NS)
        if parse_key(credential) is not None:
            await self._catch_up()
            answer = registry.authenticate(credential, now_ms())
        if isinstance(answer, Refusal):
            raise Refused(answer.status, answer.reason, answer.detail)
        return answer


def _credential(request: web.Request) -> str:
    return parse_bearer(request.headers.get("Authorization"))


async def _written(request: web.Request, body: bytes) -> web.Response:
    """Return a response whose body the client has taken; the connection of a slow one is dropped.

    Else the bodies of all requests of a client that reads none would be in memory.
    """
    response = web.Response(body=body, content_type=JSON)
    try:
        async with asyncio.timeout(WRITE_S):
            await response.prepare(request)
            await response.write_eof()
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    return response


def _json(
    message: BaseModel, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    body = message.model_dump_json(exclude_none=True).encode()
    return web.Response(body=body, status=status, headers=headers, content_type=JSON)
