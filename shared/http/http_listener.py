"""The listener of a server that aiohttp handles, with a cap on the connections of an address."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from aiohttp import web

from shared.http.capped_connections import CappedConnection, ConnectionCap
from shared.http.server_settings import ServerSettings

HANDSHAKE_S = 10.0
"""Longest s until a TLS connection is open."""
BACKLOG = 2048


async def listen(
    runner: web.AppRunner | web.ServerRunner,
    settings: ServerSettings,
    tls: ssl.SSLContext | None,
    make: Callable[[], asyncio.Protocol] | None = None,
) -> asyncio.Server:
    """Listen for a runner that is set up; the caller closes the listener before the runner.

    `make` returns the protocol of a connection, where it is not that of the runner.

    Raises OSError where the address cannot be had.
    """
    assert runner.server is not None, "the runner is not set up"
    new, cap = make or runner.server, ConnectionCap(settings.connections_per_address)
    return await asyncio.get_running_loop().create_server(
        lambda: CappedConnection(cap, new),
        settings.host,
        settings.port,
        ssl=tls,
        ssl_handshake_timeout=HANDSHAKE_S if tls else None,
        reuse_address=True,
        backlog=BACKLOG,
    )
