"""Helpers that wait; a test never passes or fails by a timing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psutil

LOADED = 3
"""Factor on the time that is promised on a quiet machine."""


async def until(reached: Callable[[], bool], within_s: float = 90.0) -> None:
    async with asyncio.timeout(within_s):
        while not reached():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def all_hung_up() -> AsyncIterator[None]:
    """Wait on exit until the TLS connections made inside are closed.

    `close` leaves a socket open until the other end has closed too, which may be after the event
    loop of a test has ended.
    """
    before = _open_sockets()
    try:
        yield
    finally:
        async with asyncio.timeout(90):
            while _open_sockets() > before:
                await asyncio.sleep(0.01)


def _open_sockets() -> int:
    connections = psutil.Process().net_connections("tcp")
    return sum(connection.status != psutil.CONN_LISTEN for connection in connections)
