"""Several requests of one gang, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

AT_ONCE = 16
"""Requests of one gang in flight."""


async def together(requests: Iterable[Awaitable[object]]) -> None:
    """Carry out requests, a few at a time; raise the first error once all are through."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(request: Awaitable[object]) -> None:
        async with limit:
            await request

    outcomes = await asyncio.gather(*map(one, requests), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
