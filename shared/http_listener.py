"""The listener of a server that aiohttp handles, with a cap on the connections of an address."""

from __future__ import annotations

import asyncio
import ssl

from aiohttp import web

from shared.capped_connections import CappedConnection, ConnectionCap
from shared.server_settings import ServerSettings

HANDSHAKE_S = 10.0
"""Longest s until a TLS connection is open."""
BACKLOG = 2048


async def listen(
    runner: web.AppRunner, settings: ServerSettings, tls: ssl.SSLContext | None
) -> asyncio.Server:
    """Listen for a runner that is set up; the caller closes the listener before the runner.

    Raises OSError where the address cannot be had.
    """
    make, cap = runner.server, ConnectionCap(settings.connections_per_address)
    assert make is not None, "the runner is not set up"
    return await asyncio.get_running_loop().create_server(
        lambda: CappedConnection(cap, make),
        settings.host,
        settings.port,
        ssl=tls,
        ssl_handshake_timeout=HANDSHAKE_S if tls else None,
        reuse_address=True,
        backlog=BACKLOG,
    )
