"""The HTTP side of terminals: WebSockets of the gateway, and of agents."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

from aiohttp import web

from services.executor.agents.refusal import Refused
from services.executor.agents.terminals import Terminals
from shared.contracts.agents import TERMINAL_PATH
from shared.contracts.keys import parse_bearer
from shared.contracts.node_registry import EnrolledNode
from shared.contracts.terminals import ENTRY_PATH
from shared.http.rate import TokenBuckets

KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 3))
"""A side that is cut off is noticed within a minute; one that only reads slowly stays."""


class TerminalApi:
    """Routes of terminals; `authenticated` returns the node of a request, or raises Refused.

    `failed` counts the wrong credentials of each address.
    """

    def __init__(
        self,
        terminals: Terminals,
        authenticated: Callable[[web.Request], Awaitable[EnrolledNode]],
        failed: TokenBuckets,
    ) -> None:
        self._failed = failed
        self._terminals = terminals
        self._authenticated = authenticated

    def add_to(
        self,
        app: web.Application,
        refusing: Callable[
            [Callable[[web.Request], Awaitable[web.StreamResponse]]],
            Callable[[web.Request], Awaitable[web.StreamResponse]],
        ],
    ) -> None:
        """Add the routes; `refusing` makes a handler answer what is refused."""
        app.router.add_get(f"{TERMINAL_PATH}/{{id}}", refusing(self._of_agent))
        app.router.add_get(f"{ENTRY_PATH}/{{id}}", refusing(self._of_user))

    async def _of_agent(self, request: web.Request) -> web.StreamResponse:
        node = await self._authenticated(request)
        _keep_alive(request)
        session_id = request.headers.get("Berth-Session", "")
        return await self._terminals.serve_agent(
            request, node, request.match_info["id"], session_id
        )

    async def _of_user(self, request: web.Request) -> web.StreamResponse:
        _keep_alive(request)
        token = parse_bearer(request.headers.get("Authorization"))
        terminal_id = request.match_info["id"]
        return await self._terminals.serve_user(request, terminal_id, token, self._failed)


def _keep_alive(request: web.Request) -> None:
    if request.headers.get("Upgrade", "").lower() != "websocket":
        raise Refused(426, "no_websocket", "Upgrade: a WebSocket is required")
    connected = request.transport.get_extra_info("socket") if request.transport else None
    if connected is None:
        raise Refused(503, "closing", "the connection is closed")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE:
        connected.setsockopt(socket.IPPROTO_TCP, option, value)
