"""The HTTP side of sessions: authentication, bounds, parsing, and refusals as JSON."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import monotonic_ns
from typing import NamedTuple, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from services.executor.sessions.body import KIB, read_body, replace_nul
from services.executor.sessions.endpoints import Endpoints
from services.executor.sessions.refusal import Refused, limited, malformed, unavailable
from shared.bus.clock import now_ms
from shared.contracts.agents import Heartbeat, Hello, OrdersRequest, ReportsRequest, Stream
from shared.contracts.keys import parse_key
from shared.contracts.node_registry import EnrolledNode, NodeRegistry, Refusal
from shared.rate import NS, Rate, TokenBuckets

HEADER_BYTES = 8 * KIB
FAILED = Rate(1, 100)
"""Wrong credentials of one address."""

log = logging.getLogger(__name__)
M = TypeVar("M", bound=BaseModel)


class Endpoint(NamedTuple):
    """A request: its message, the largest body, and what answers it."""

    message: type[BaseModel]
    max_bytes: int


ENDPOINTS = {
    "hello": Endpoint(Hello, 1024 * KIB),
    "heartbeat": Endpoint(Heartbeat, 4 * KIB),
    "orders": Endpoint(OrdersRequest, 4 * KIB),
    "reports": Endpoint(ReportsRequest, 512 * KIB),
    "stream": Endpoint(Stream, 640 * KIB),
}


class AgentApi:
    """Serves `POST /agent/v1/<name>`; `registry` returns the present fold of the enrolments."""

    def __init__(
        self,
        endpoints: Endpoints,
        registry: Callable[[], NodeRegistry | None],
        catch_up: Callable[[], Awaitable[None]],
    ) -> None:
        self._endpoints = endpoints
        self._registry = registry
        self._catch_up = catch_up
        self._failed = TokenBuckets(FAILED)

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/agent/v1/{name}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.Response:
        try:
            answer = await self._answer(request)
        except Refused as refused:
            headers = {"Retry-After": str(refused.retry_after_s)} if refused.retry_after_s else {}
            return _json(refused.problem, refused.status, headers)
        return _json(answer) if answer is not None else web.Response(status=204)

    async def _answer(self, request: web.Request) -> BaseModel | None:
        endpoint = ENDPOINTS.get(request.match_info["name"])
        if endpoint is None:
            raise Refused(404, "not_found", f"path: {request.path[:64]!r}; /agent/v1/hello, ...")
        node = await self._authenticated(request)
        self._endpoints.limits.take_request(node.node_id, monotonic_ns())
        body = await self._read(request, endpoint, node.node_id)
        try:
            message = endpoint.message.model_validate_json(body)
        except ValidationError as error:
            raise malformed(error) from None
        match message:
            case Hello():
                return await self._endpoints.hello(node, message)
            case Heartbeat():
                await self._endpoints.heartbeat(node, message)
                return None
            case OrdersRequest():
                return await self._endpoints.orders(node, message)
            case ReportsRequest():
                return await self._endpoints.reports(node, message, len(body))
            case Stream():
                await self._endpoints.stream(node, message)
                return None
            case _:
                raise TypeError(f"no answer to {type(message).__name__}")

    async def _read(self, request: web.Request, endpoint: Endpoint, node_id: str) -> bytes:
        """Return the body; large ones of a node are limited, so that its heartbeats never are."""
        if endpoint.message is Heartbeat:
            return await read_body(request, endpoint.max_bytes)
        limits = self._endpoints.limits
        limits.check_bytes(node_id, monotonic_ns())
        body = await read_body(request, endpoint.max_bytes)
        limits.spend_bytes(node_id, len(body), monotonic_ns())
        return replace_nul(body)

    async def _authenticated(self, request: web.Request) -> EnrolledNode:
        """Return the node of the credential; one that joined a moment ago is looked for."""
        registry = self._registry()
        if registry is None:
            raise unavailable("starting", "executor: access is being read")
        scheme, _, credential = request.headers.get("Authorization", "").partition(" ")
        credential = credential.strip() if scheme.lower() == "bearer" else ""
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


def _json(
    message: BaseModel, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    body = message.model_dump_json(exclude_none=True).encode()
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")
