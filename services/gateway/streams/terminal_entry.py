"""Connects a terminal to the executor that holds the session of its node."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from pydantic import ValidationError

from services.gateway.responses.problem import ApiError, unavailable
from services.gateway.settings import GatewaySettings
from shared.contracts.terminals import END, ENTRY_PATH, MAX_FRAME_BYTES, STARTED, TerminalEnd

START_S = 40.0
"""Longest s until the program runs; an executor gives its agent 15 s, and that its step 15 s."""
CONNECT_S = 5.0
NOT_HERE = "not_here"
NOT_CONNECTED = "its node is connected to no executor now; its jobs go on: repeat when it is back"
KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 3))


def trust_of(settings: GatewaySettings) -> ssl.SSLContext | bool:
    """Return the CA that executors are checked by: the installation's, else the system's.

    That of the broker is often the same, and need not be.
    """
    ca = settings.executor_ca or settings.tls_ca or settings.kafka_ca
    return ssl.create_default_context(cafile=str(ca)) if ca else True


@asynccontextmanager
async def entered(
    settings: GatewaySettings, terminal_id: str, token: str, request: Mapping[str, Any]
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """Enter a terminal, and leave it. Raises ApiError where its program does not start."""
    refusals: list[str] = []
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
    trust = trust_of(settings)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as client:
        for url in settings.terminal_addresses:
            try:
                connected = await client.ws_connect(
                    f"{url}{ENTRY_PATH}/{terminal_id}",
                    headers={"Authorization": f"Bearer {token}"},
                    max_msg_size=MAX_FRAME_BYTES + 16,
                    ssl=trust,
                )
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                refusals.append(f"{url}: {_shown(error)}")
                continue
            async with connected:
                _keep_alive(connected)
                if await _is_started(connected, request):
                    yield connected
                    return
    if refusals:
        raise unavailable("executor_unavailable", "; ".join(refusals)[:512])
    raise unavailable("node_not_connected", NOT_CONNECTED)


async def _is_started(
    connected: aiohttp.ClientWebSocketResponse, request: Mapping[str, Any]
) -> bool:
    """Return whether the program runs; False where another executor may hold the node.

    Raises ApiError.
    """
    try:
        async with asyncio.timeout(START_S):
            await connected.send_str(json.dumps(request))
            message = await connected.receive()
    except (TimeoutError, ConnectionError):
        raise unavailable("node_not_connected", NOT_CONNECTED) from None
    if message.type is not aiohttp.WSMsgType.BINARY:
        raise unavailable("terminal_cut", "the executor closed the terminal before it began")
    if message.data[:1] == STARTED:
        return True
    if message.data[:1] != END:
        raise unavailable("terminal_cut", "the executor began with output")
    try:
        end = TerminalEnd.model_validate_json(message.data[1:])
    except ValidationError:
        raise unavailable("terminal_cut", "the node ended the terminal by no valid end") from None
    if end.reason == NOT_HERE:
        return False
    status = 503 if end.reason in ("node_not_connected", "behind", "rate_limited") else 409
    raise ApiError(status, end.reason, end.detail)


def _keep_alive(connected: aiohttp.ClientWebSocketResponse) -> None:
    connection = connected.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _shown(error: Exception) -> str:
    if isinstance(error, aiohttp.WSServerHandshakeError):
        return f"status {error.status}"
    return str(error) or type(error).__name__
