"""What a test waits for, and how much longer than promised: timings never decide one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psutil

LOADED = 3
"""Times what is promised on a quiet machine."""


async def until(reached: Callable[[], bool], within_s: float = 90.0) -> None:
    async with asyncio.timeout(within_s):
        while not reached():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def all_hung_up() -> AsyncIterator[None]:
    """Around what speaks TLS in a test's own event loop: `close` leaves a socket open until the
    other end has said goodbye too, which may be after the loop has ended."""
    before = _open_sockets()
    try:
        yield
    finally:
        async with asyncio.timeout(90):
            while _open_sockets() > before:
                await asyncio.sleep(0.01)


def _open_sockets() -> int:
    found = psutil.Process().net_connections("tcp")
    return sum(each.status != psutil.CONN_LISTEN for each in found)
