"""The body of a request, collected within bounds of size and time; used by every server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

BODY_TIMEOUT_S = 15.0
"""Longest time in which a body must arrive; a slow client holds its own connection only."""


class BodyTooLarge(Exception):
    """The body has more bytes than are allowed."""


class BodyTooSlow(Exception):
    """The body did not arrive in time; the text is a detail for the client."""


async def collect_body(chunks: AsyncIterator[bytes], max_bytes: int) -> bytes:
    """Return the whole body. Raises BodyTooLarge at the first byte too many, and BodyTooSlow."""
    collected, size = list[bytes](), 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in chunks:
                size += len(chunk)
                if size > max_bytes:
                    raise BodyTooLarge
                collected.append(chunk)
    except TimeoutError:
        raise BodyTooSlow(f"body: not here after {BODY_TIMEOUT_S:g} s") from None
    return b"".join(collected)
