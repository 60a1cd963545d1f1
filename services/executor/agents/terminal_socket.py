"""The WebSocket of a terminal's user: its first message, the request, and its last one, the end."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from aiohttp import WSMsgType, web

from shared.contracts.agents import TerminalRequest
from shared.contracts.terminals import END, MAX_FRAME_BYTES

CONNECT_S = 15.0
"""Longest s until each side has said what it has to say at the beginning."""


def terminal_socket() -> web.WebSocketResponse:
    return web.WebSocketResponse(compress=False, max_msg_size=MAX_FRAME_BYTES + 16)


async def request_of(
    user: web.WebSocketResponse, terminal_id: str, allocation_id: str
) -> TerminalRequest:
    """Return the request, the first message. Raises TimeoutError, ValueError, ValidationError."""
    async with asyncio.timeout(CONNECT_S):
        message = await user.receive()
    if message.type is not WSMsgType.TEXT:
        raise ValueError("the first message is not the request")
    requested = json.loads(message.data)
    ids = {"terminal_id": terminal_id, "allocation_id": allocation_id}
    return TerminalRequest.model_validate({**requested, **ids})


async def send_end(user: web.WebSocketResponse, reason: str, detail: str) -> None:
    document = {"reason": reason, "detail": detail[:512], "exit_code": None}
    with suppress(ConnectionError, RuntimeError):
        await user.send_bytes(END + json.dumps(document).encode())
        await user.close()
