"""Stops aiokafka clients, also one that failed inside or waits for a broker that is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

STOP_S = 5.0

log = logging.getLogger(__name__)


async def stop_client(client: Any, within_s: float = STOP_S) -> None:
    """Stop a consumer or a producer; returns in time, whatever state it is in.

    aiokafka 0.14 raises CancelledError out of `stop` when one of its own tasks was cancelled before
    it ran; that would end the calling task without an error.
    """
    if await _ended(client.stop, within_s):
        return
    log.warning("a client of the broker did not stop in good order")
    for part in (getattr(client, "_fetcher", None), getattr(client, "_client", None)):
        if part is not None:
            await _ended(part.close, within_s)


async def _ended(stop: Callable[[], Awaitable[None]], within_s: float) -> bool:
    """Return whether `stop` succeeded in time. A cancelled caller stops waiting."""
    stopping = asyncio.ensure_future(stop())
    await asyncio.wait({stopping}, timeout=within_s)
    if not stopping.done():
        stopping.cancel()
        return False
    return not stopping.cancelled() and stopping.exception() is None
